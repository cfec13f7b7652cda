from stats import median


def test_the_order_of_the_numbers_does_not_matter() -> None:
    assert median([3, 1, 2]) == 2


def test_the_median_of_an_even_count_lies_between_the_two_in_the_middle() -> None:
    assert median([1, 2, 30, 40]) == 16
