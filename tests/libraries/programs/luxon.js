// Zones, durations and intervals.
(() => {
  const { DateTime, Duration, Interval, Settings } = luxon;
  Settings.defaultLocale = "en-US";
  const start = DateTime.fromISO("2024-03-10T01:30:00", { zone: "America/New_York" });
  return {
    zones: ["Europe/Berlin", "Asia/Tokyo", "UTC"].map((zone) => start.setZone(zone).toISO()),
    spring: start.plus({ hours: 1 }).toISO(), offset: start.plus({ days: 1 }).offset,
    duration: Duration.fromObject({ hours: 36, minutes: 90 }).shiftTo("days", "hours", "minutes").toObject(),
    interval: Interval.fromDateTimes(start, start.plus({ weeks: 2 })).splitBy({ days: 5 }).map((part) => part.toISODate()),
    parsed: DateTime.fromFormat("23 May 2021 14:05", "dd LLLL yyyy HH:mm", { zone: "utc" }).toISO(), invalid: DateTime.fromISO("nonsense").invalidReason,
    week: [start.weekNumber, start.weekday, start.ordinal], text: start.toFormat("cccc, d LLLL yyyy"), now: DateTime.now().toUTC().startOf("hour").toISO(),
  };
})()
