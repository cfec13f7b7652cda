from bill import split


def test_an_even_bill_is_split_evenly() -> None:
    assert split(900, 3) == [300, 300, 300]


def test_no_cent_is_lost() -> None:
    assert sum(split(1003, 4)) == 1003


def test_nobody_pays_more_than_a_cent_above_the_others() -> None:
    shares = split(1003, 4)

    assert max(shares) - min(shares) <= 1
