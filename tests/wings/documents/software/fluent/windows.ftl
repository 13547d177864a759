a = The cat sleeps
b =
    Two
    lines
c = { $n ->
    [one] A cat
   *[other] Cats
}
