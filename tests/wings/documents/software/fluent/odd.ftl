### A comment of the file

## A section
no-blank=Text without blanks
function = Today is { DATETIME($date, month: "long", year: "numeric") } here
reference = See { title.placeholder } and { title }
quoted = { "[" }Text in brackets]
unicode = A dash { "\u2014" } here
tags = Press <b data-l10n-name="start">Start</b> now
percent = 5 % of "all" texts
