# This Source Code Form is subject to the terms of a license.

about-title = About { -brand-short-name }
about-window =
    .title = About the program
    .accesskey = A
tabs-close =
    .title =
        { $tabCount ->
            [1] Close the tab
            [one] Close the tab
           *[other] Close { $tabCount } tabs
        }
