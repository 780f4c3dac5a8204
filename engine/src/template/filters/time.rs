//! Points in time.

use std::fmt;
use std::sync::Arc;

use jiff::civil::DateTime;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ZonedDateTime};
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

/// The time between two moments, as Python's `timedelta`, in microseconds.
#[derive(Debug)]
struct Difference(i64);

const DAY: i64 = 86_400_000_000;

impl Object for Difference {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        let within = self.0.rem_euclid(DAY);
        Some(Value::from(match key {
            "days" => self.0.div_euclid(DAY),
            "seconds" => within / 1_000_000,
            "microseconds" => within % 1_000_000,
            _ => return None,
        }))
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
        _: &[Value],
    ) -> Result<Value, Error> {
        match method {
            "total_seconds" => Ok(Value::from(self.0 as f64 / 1e6)),
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, within) = (self.0.div_euclid(DAY), self.0.rem_euclid(DAY));
        match days {
            0 => {}
            1 | -1 => write!(f, "{days} day, ")?,
            _ => write!(f, "{days} days, ")?,
        }
        let (seconds, rest) = (within / 1_000_000, within % 1_000_000);
        write!(
            f,
            "{}:{:02}:{:02}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        )?;
        match rest {
            0 => Ok(()),
            rest => write!(f, ".{rest:06}"),
        }
    }
}

/// The time from one moment to another, or a moment so much earlier. None: one of the two is no time.
///
/// # Errors
/// If the outcome is out of the calendar.
pub(super) fn difference(from: &Value, to: &Value) -> Result<Option<Value>, Error> {
    let moment = |value: &Value| value.downcast_object_ref::<Moment>().map(|moment| moment.0);
    let micros = |moment: DateTime| -> Result<i64, Error> {
        let zoned = moment
            .to_zoned_datetime(TimeZone::UTC)
            .map_err(|error| failed(error.to_string()))?;
        Ok(zoned.timestamp().as_microsecond())
    };
    let Some(from) = moment(from) else {
        return Ok(None);
    };
    if let Some(to) = moment(to) {
        let between = micros(from)? - micros(to)?;
        return Ok(Some(Value::from_object(Difference(between))));
    }
    let Some(Difference(back)) = to.downcast_object_ref::<Difference>() else {
        return Ok(None);
    };
    let earlier = Timestamp::from_microsecond(micros(from)? - back)
        .map_err(|error| failed(error.to_string()))?;
    let earlier = earlier.to_zoned_datetime(TimeZone::UTC).datetime();
    Ok(Some(Value::from_object(Moment(earlier))))
}

/// Whether the value is a point in time.
pub(crate) fn is_time(value: &Value) -> bool {
    value.downcast_object_ref::<Moment>().is_some()
}

/// As text; a moment without a zone has nothing to say for `%z` and `%Z`.
fn formatted(format: &str, moment: DateTime) -> Result<Value, Error> {
    let plain = format
        .replace("%:z", "")
        .replace("%z", "")
        .replace("%Z", "");
    written(&plain, moment)
}

fn written<T: Into<BrokenDownTime>>(format: &str, moment: T) -> Result<Value, Error> {
    jiff::fmt::strtime::format(format, moment)
        .map(Value::from)
        .map_err(|error| failed(format!("`{format}` is no format of a time: {error}")))
}

/// A moment in UTC or in the controller's zone.
fn zoned(seconds: f64, utc: bool) -> Result<ZonedDateTime, Error> {
    let moment = Timestamp::from_microsecond((seconds * 1e6) as i64)
        .map_err(|error| failed(error.to_string()))?;
    let zone = if utc {
        TimeZone::UTC
    } else {
        TimeZone::get(&evaluation::current()?.templar.controller().time_zone())
            .unwrap_or(TimeZone::UTC)
    };
    Ok(moment.to_zoned_datetime(zone))
}

/// `now(utc=False, fmt=None)`: a point in time, or its text.
pub(crate) fn now(utc: bool, format: Option<&str>) -> Result<Value, Error> {
    let moment = zoned(evaluation::current()?.templar.controller().now(), utc)?;
    match format {
        Some(format) => written(format, &moment),
        None => Ok(Value::from_object(Moment(moment.datetime()))),
    }
}

fn strftime(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let seconds = match given.some(0) {
        None => evaluation::current()?.templar.controller().now(),
        Some(second) => match second.as_str() {
            Some(written) => written
                .trim()
                .parse()
                .map_err(|_| failed(format!("Invalid value for epoch value ({written})")))?,
            None => f64::try_from(second.clone())
                .map_err(|_| failed("strftime needs seconds since 1970"))?,
        },
    };
    written(&text::str(value)?, &zoned(seconds, given.flag(1, false))?)
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
