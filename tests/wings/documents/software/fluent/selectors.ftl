shared = { $userGender ->
    [male] He painted it.
    [female] She painted it.
   *[other] They painted it.
}
place = { NUMBER($n, type: "ordinal") ->
    [1] First place
    [one] { $n }st place
   *[other] { $n }th place
}
nested = { $a ->
   *[x] { $b ->
        [y] One text
       *[z] Another text
    }
}
key =
    { PLATFORM() ->
        [macos] Press Command
       *[other] Press Control
    }
beside = You have { $n ->
    [one] one cat
   *[other] { $n } cats
} here
