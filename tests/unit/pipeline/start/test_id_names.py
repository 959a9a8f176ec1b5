"""Only the names: what `new` does with the columns is in test_deciding.py and test_split_by_group.py."""

import pytest

from slipway.pipeline.start.id_names import is_group, is_id

IDS = (
    "id", "customer_id", "customer.id", "Subject ID", "patient-no", "hid", "user", "buyer_account",
    "Customer No.", "CUSTOMER_NO", "userId", "weightedUserId", "flightNumber",
    "userid", "CUSTOMERKEY", "USUBJID", "CLIENTNUM", "accountNum", "firmid", "idcase", "idpersona",
    "IdCliente", "hhid", "idno", "IDNUM", "cardno", "obsno", "id_cliente", "customer_id_x", "userId.y",
    "Customer/Client ID", "Kundennr", "Kunden-Nr.", "Kundennummer", "Kunde", "cliente", "Subj", "MRN",
)  # fmt: skip
FEATURES = (
    "amount_paid", "paid", "bid", "acid", "covid", "piano", "discardno", "ordernum", "num",
    "income_per_person", "costPerClient", "income_per_household", "USD/person", "pages/session",
    "PM2.5/NO",
    "week_number", "Week No.", "weekNumber", "Semana No.", "Woche-Nr.", "week_number_x",
    "house_no", "HouseNo", "Haus-Nr.", "room_no", "seat_no",
    "city_id", "city_id_x", "id_ciudad", "idciudad", "id_estado", "district_id",
    "edad_paciente", "id_02", "NO", "NO_x", "ambientNO", "no_x", "user_x", "key_y", "pos_x", "city",
)  # fmt: skip
OF_ROWS = ("", "Unnamed: 0", "row", "rownames", "row_index", "index")
OF_GROUPS = ("household", "session", "email", "contact_e-mail", "E-Mail", "e_mail")


@pytest.mark.parametrize("name", IDS)
def test_an_id_is_known_by_its_name_however_that_is_written(name):
    assert (is_id(name), is_group(name)) == (True, True)


@pytest.mark.parametrize("name", FEATURES)
def test_a_name_that_only_looks_like_that_of_an_id_is_none(name):
    assert (is_id(name), is_group(name)) == (False, False)


@pytest.mark.parametrize("name", OF_ROWS)
def test_a_row_index_counts_rows_but_groups_none(name):
    assert (is_id(name), is_group(name)) == (True, False)


@pytest.mark.parametrize("name", OF_GROUPS)
def test_a_household_groups_rows_but_may_be_a_number_that_differs_in_every_row(name):
    assert (is_id(name), is_group(name)) == (False, True)
