use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::{Facts, source::Source};

/// The host's clock, in its own time zone.
pub(super) fn gather(source: &Source<'_>, facts: &mut Facts) {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    facts.put("date_time", date_time(now, &zone(source)));
}

/// A point in time as Python prints one, `2026-12-01 01:06:35.430518`, in UTC.
pub(in crate::tasks) fn stamp(since_epoch: Duration) -> String {
    let civil = Civil::of(i64::try_from(since_epoch.as_secs()).unwrap_or(0));
    let micros = since_epoch.subsec_micros();
    format!("{} {}.{micros:06}", civil.date("-"), civil.time(":"))
}

/// Seconds since 1970 as a header of HTTP has them, `Tue, 01 Dec 2026 01:06:35 GMT`.
pub(in crate::tasks) fn http_date(epoch: i64) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let civil = Civil::of(epoch);
    let month = usize::try_from(civil.month - 1).unwrap_or(0);
    format!(
        "{}, {:02} {} {:04} {} GMT",
        &WEEKDAYS[usize::from(civil.weekday)][..3],
        civil.day,
        MONTHS[month.min(11)],
        civil.year,
        civil.time(":")
    )
}

#[derive(Debug, PartialEq)]
struct Zone {
    /// `+0200`
    offset: String,
    /// `CEST`
    name: String,
}

/// Most servers keep UTC; only for others is `date` asked, so that no time zone rules are needed here.
fn zone(source: &Source<'_>) -> Zone {
    let utc = || Zone {
        offset: "+0000".to_owned(),
        name: "UTC".to_owned(),
    };
    let zone = source.link_name("/etc/localtime");
    if matches!(
        zone.as_deref(),
        None | Some("UTC" | "Etc" | "UCT" | "Universal" | "Zulu")
    ) {
        return utc();
    }
    let answer = source
        .probe(&["/usr/bin/date", "+%z %Z"])
        .unwrap_or_default();
    match answer.stdout.trim().split_once(' ') {
        Some((offset, name)) => Zone {
            offset: offset.to_owned(),
            name: name.to_owned(),
        },
        None => utc(),
    }
}

fn date_time(now: Duration, zone: &Zone) -> Value {
    let epoch = i64::try_from(now.as_secs()).unwrap_or(0);
    let (utc, local) = (Civil::of(epoch), Civil::of(epoch + seconds(&zone.offset)));
    let micros = now.subsec_micros();
    json!({
        "year": format!("{:04}", local.year),
        "month": format!("{:02}", local.month),
        "day": format!("{:02}", local.day),
        "hour": format!("{:02}", local.hour),
        "minute": format!("{:02}", local.minute),
        "second": format!("{:02}", local.second),
        "weekday": WEEKDAYS[usize::from(local.weekday)],
        "weekday_number": local.weekday.to_string(),
        "weeknumber": format!("{:02}", local.week()),
        "date": local.date("-"),
        "time": local.time(":"),
        "epoch": epoch.to_string(),
        "epoch_int": epoch.to_string(),
        "iso8601": format!("{}T{}Z", utc.date("-"), utc.time(":")),
        "iso8601_micro": format!("{}T{}.{micros:06}Z", utc.date("-"), utc.time(":")),
        "iso8601_basic": format!("{}T{}{micros:06}", local.date(""), local.time("")),
        "iso8601_basic_short": format!("{}T{}", local.date(""), local.time("")),
        "tz": zone.name,
        "tz_dst": zone.name,
        "tz_offset": zone.offset,
    })
}

/// `+0530` in seconds.
fn seconds(offset: &str) -> i64 {
    let (sign, digits) = match offset.split_at_checked(1) {
        Some(("-", digits)) => (-1, digits),
        Some((_, digits)) => (1, digits),
        None => return 0,
    };
    let number = |range| {
        digits
            .get(range)
            .and_then(|part: &str| part.parse::<i64>().ok())
            .unwrap_or(0)
    };
    sign * (number(0..2) * 3600 + number(2..4) * 60)
}

const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// A point in time in the proleptic Gregorian calendar.
#[derive(Debug, PartialEq)]
struct Civil {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    /// 0 is Sunday.
    weekday: u8,
    /// 0 is the first of January.
    day_of_year: i64,
}

impl Civil {
    fn of(epoch: i64) -> Self {
        let (days, rest) = (epoch.div_euclid(86400), epoch.rem_euclid(86400));
        // Years are counted from March, so that the leap day is the last of a year.
        let since_march_0 = days + 719_468;
        let (era, of_era) = (
            since_march_0.div_euclid(146_097),
            since_march_0.rem_euclid(146_097),
        );
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 {
            shifted_month + 3
        } else {
            shifted_month - 9
        };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let day_of_year = if month > 2 {
            of_year + 59 + i64::from(leap)
        } else {
            of_year - 306
        };
        Self {
            year,
            month,
            day,
            hour: rest / 3600,
            minute: rest / 60 % 60,
            second: rest % 60,
            weekday: u8::try_from((days + 4).rem_euclid(7)).unwrap_or(0),
            day_of_year,
        }
    }

    /// The week of the year, the first Monday beginning week 1.
    fn week(&self) -> i64 {
        (self.day_of_year + 7 - (i64::from(self.weekday) + 6) % 7) / 7
    }

    fn date(&self, separator: &str) -> String {
        format!(
            "{:04}{separator}{:02}{separator}{:02}",
            self.year, self.month, self.day
        )
    }

    fn time(&self, separator: &str) -> String {
        format!(
            "{:02}{separator}{:02}{separator}{:02}",
            self.hour, self.minute, self.second
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Civil, Zone, date_time, http_date, seconds};

    #[test]
    fn dates_are_those_of_the_calendar() {
        let cases = [
            (0, "1970-01-01", 4, 0),
            (951_782_400, "2000-02-29", 2, 9),
            (1_796_087_195, "2026-12-01", 2, 48),
            (1_704_067_200, "2024-01-01", 1, 1),
            (1_735_603_200, "2024-12-31", 2, 53),
            (4_107_542_400, "2100-03-01", 1, 9),
        ];
        for (epoch, date, weekday, week) in cases {
            let civil = Civil::of(epoch);
            assert_eq!(
                (civil.date("-").as_str(), civil.weekday, civil.week()),
                (date, weekday, week)
            );
        }
    }

    #[test]
    fn local_and_universal_time_are_both_given() {
        let zone = Zone {
            offset: "+0530".to_owned(),
            name: "IST".to_owned(),
        };
        let fact = date_time(Duration::new(1_796_087_195, 430_518_000), &zone);
        assert_eq!(fact["iso8601_micro"], "2026-12-01T01:06:35.430518Z");
        assert_eq!(fact["iso8601_basic_short"], "20261201T063635");
        assert_eq!(fact["tz_offset"], "+0530");
        assert_eq!(
            (seconds("-0330"), seconds("+0000"), seconds("")),
            (-12_600, 0, 0)
        );
    }

    #[test]
    fn headers_have_dates_of_their_own() {
        assert_eq!(http_date(1_796_087_195), "Tue, 01 Dec 2026 01:06:35 GMT");
    }
}
