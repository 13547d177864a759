# The texts of the application
-brand-name = Painter
    .gender = masculine

title = Open the file
greeting = Hello, { $name }! Welcome to { -brand-name }.
block =
    A long text
    on two lines
multi = First line
    second line

    after a blank line
emails =
    { $count ->
        [one] You have one message.
       *[other] You have { $count } messages.
    }
login = Log in
    .placeholder = Your mail address
    .title = Type { "{" } here
