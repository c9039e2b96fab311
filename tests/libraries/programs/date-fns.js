// Formats, arithmetic and locales.
(() => {
  const date = new Date(Date.UTC(2024, 1, 29, 13, 5, 9));
  const { format, addMonths, differenceInBusinessDays, eachDayOfInterval, formatDistance, parse, intervalToDuration, startOfISOWeek, locales } = dateFns;
  return {
    formats: ["yyyy-MM-dd'T'HH:mm:ss", "PPPPpppp", "do MMMM, QQQ", "RRRR-'W'II-i"].map((text) => format(date, text)),
    german: format(date, "PPPP", { locale: locales.de }), japanese: format(date, "PPPP", { locale: locales.ja }),
    later: addMonths(date, 12).toISOString(), business: differenceInBusinessDays(addMonths(date, 3), date),
    days: eachDayOfInterval({ start: date, end: addMonths(date, 1) }).length, distance: formatDistance(date, addMonths(date, 5), { addSuffix: true }),
    parsed: parse("03/04/2021 5:06 PM", "dd/MM/yyyy h:mm a", date).toISOString(), span: intervalToDuration({ start: date, end: addMonths(date, 14) }),
    monday: startOfISOWeek(date).toISOString(),
  };
})()
