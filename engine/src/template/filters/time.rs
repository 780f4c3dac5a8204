//! Points in time.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use minijinja::value::{DynObject, Object, ObjectRepr};
use minijinja::{Error, ErrorKind, State, Value};

use crate::template::evaluation;
use crate::template::given::{Filter, Given, failed};
use crate::template::python::text;

pub(super) const FILTERS: &[Filter] = &[
    Filter {
        names: "strftime",
        parameters: "second utc",
        run: strftime,
    },
    Filter {
        names: "to_datetime",
        parameters: "format",
        run: to_datetime,
    },
];

/// A point in time without a zone, as Python's `datetime`.
#[derive(Debug)]
struct Moment(DateTime);

impl Object for Moment {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        Some(match key {
            "year" => Value::from(i64::from(self.0.year())),
            "month" => Value::from(i64::from(self.0.month())),
            "day" => Value::from(i64::from(self.0.day())),
            "hour" => Value::from(i64::from(self.0.hour())),
            "minute" => Value::from(i64::from(self.0.minute())),
            "second" => Value::from(i64::from(self.0.second())),
            "microsecond" => Value::from(i64::from(self.0.subsec_nanosecond()) / 1000),
            _ => return None,
        })
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn custom_cmp(self: &Arc<Self>, other: &DynObject) -> Option<std::cmp::Ordering> {
        Some(self.0.cmp(&other.downcast_ref::<Self>()?.0))
    }

    fn call_method(
        self: &Arc<Self>,
        _: &mut State<'_, '_>,
        method: &str,
        arguments: &[Value],
    ) -> Result<Value, Error> {
        match method {
            "strftime" => {
                let format = Given::bind("strftime", "format", arguments)?
                    .need(0)
                    .and_then(text::str)?;
                formatted(&format, self.0)
            }
            "isoformat" => Ok(Value::from(self.0.to_string())),
            "timestamp" => {
                let zone = TimeZone::UTC;
                let zoned = self
                    .0
                    .to_zoned_datetime(zone)
                    .map_err(|error| failed(error.to_string()))?;
                Ok(Value::from(zoned.timestamp().as_microsecond() as f64 / 1e6))
            }
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.to_string().replace('T', " "))
    }
}

fn formatted(format: &str, moment: DateTime) -> Result<Value, Error> {
    jiff::fmt::strtime::format(format, moment)
        .map(Value::from)
        .map_err(|error| failed(format!("`{format}` is no format of a time: {error}")))
}

/// The civil time of a moment in UTC or in the controller's zone.
fn civil(seconds: f64, utc: bool) -> Result<DateTime, Error> {
    let moment = Timestamp::from_microsecond((seconds * 1e6) as i64)
        .map_err(|error| failed(error.to_string()))?;
    let zone = if utc {
        TimeZone::UTC
    } else {
        TimeZone::get(&evaluation::current()?.templar.controller().time_zone())
            .unwrap_or(TimeZone::UTC)
    };
    Ok(zone.to_datetime(moment))
}

/// `now(utc=False, fmt=None)`: a point in time, or its text.
pub(crate) fn now(utc: bool, format: Option<&str>) -> Result<Value, Error> {
    let moment = civil(evaluation::current()?.templar.controller().now(), utc)?;
    match format {
        Some(format) => formatted(format, moment),
        None => Ok(Value::from_object(Moment(moment))),
    }
}

fn strftime(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let seconds = match given.some(0) {
        None => evaluation::current()?.templar.controller().now(),
        Some(second) => match second.as_str() {
            Some(written) => written
                .trim()
                .parse()
                .map_err(|_| failed(format!("`{written}` is no number of seconds")))?,
            None => f64::try_from(second.clone())
                .map_err(|_| failed("strftime needs seconds since 1970"))?,
        },
    };
    formatted(&text::str(value)?, civil(seconds, given.flag(1, false))?)
}

fn to_datetime(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let written = text::str(value)?;
    let format = given.text(0, "%Y-%m-%d %H:%M:%S")?;
    let parsed = jiff::fmt::strtime::parse(&format, &written).and_then(|parsed| {
        parsed
            .to_datetime()
            .or_else(|_| parsed.to_date().map(DateTime::from))
    });
    parsed
        .map(|moment| Value::from_object(Moment(moment)))
        .map_err(|error| failed(format!("`{written}` does not fit `{format}`: {error}")))
}
