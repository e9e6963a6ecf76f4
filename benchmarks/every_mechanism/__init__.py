"""Every mechanism beside dp-accounting: what is released, the peer's answer, and the page.

``cases`` has the mechanisms, ``attained`` strategies that reach a lower end, ``peer`` the other
library's brackets, ``measuring`` one line of the table, and ``page`` the section of the
documentation.
"""
