/* tests/tools/test_network.c - the text of --network, and the predicted time of exchanges. */
#include "tests/suites.h"
#include "tests/support/support.h"
#include "tools/train/ranks/network.h"

TESTS(network)

TEST(networks_have_a_rate_and_a_delay) {
    network n;
    ck_assert(network_read("10Gb,50us", &n));
    ck_assert_double_eq_tol(n.rate, 1.25e9, 1);
    ck_assert_double_eq_tol(n.delay, 50e-6, 1e-15);
    ck_assert(network_read("1.5Mb,2ms", &n));
    ck_assert_double_eq_tol(n.rate, 187500, 1e-6);
    ck_assert_double_eq_tol(n.delay, 2e-3, 1e-15);
    ck_assert(network_read("8kb,1s", &n) && n.rate > 999 && n.rate < 1001);
    static const char *const none[] = {
        "",       ",",        "10Gb",      "10Gb,",     "Gb,50us",
        "10,50",  "10GB,1us", "10Gb,1min", "-1Gb,1us",  "0Gb,1us",
        "1Gb,0s", "1e3Gb,1s", "1Gb 1us",   "1Gb,1us,1", "1..Gb,1s"
    };
    for (size_t i = 0; i < COUNT_OF(none); i++)
        ck_assert_msg(!network_read(none[i], &n), "%s", none[i]);
}

/* The milliseconds of exchanges at 1 Gbit/s, which is 125 bytes in a microsecond, with a delay of 1
 * ms. */
static double ms(const traffic *t) {
    network n;
    ck_assert(network_read("1Gb,1ms", &n));
    return 1e3 * network_seconds(&n, t);
}

/* A rank's own part is not sent. Of sent and received bytes the larger number counts. */
TEST(exchanges_take_a_delay_and_the_time_of_their_bytes) {
    static const int64_t send_at[] = { 0, 1000, 51000, 53000 },
                         receive_at[] = { 0, 100, 200, 4200 };
    traffic t = { 0 };
    traffic_alltoallv(&t, send_at, receive_at, 1, 3);
    ck_assert_int_eq(t.bytes, 4100);
    ck_assert_int_eq(t.delays, 1);
    ck_assert_double_eq_tol(ms(&t), 1 + 4100 / 125e3, 1e-9);
    traffic_alltoallv(&t, send_at, receive_at, 0, 3); /* sends 50000 and 2000 */
    ck_assert_int_eq(t.bytes, 4100 + 52000);
    ck_assert_int_eq(t.delays, 2);
}

/* A rank sends its data to every other rank through its only link. The larger of the bytes that it
 * sends and the bytes that it receives is counted. */
TEST(what_all_get_is_sent_to_each) {
    static const int64_t at[] = { 0, 100, 1100, 1200, 1300 };
    traffic t = { 0 };
    traffic_allgatherv(&t, at, 0, 4);
    ck_assert_int_eq(t.bytes, 1200);
    t = (traffic){ 0 };
    traffic_allgatherv(&t, at, 1, 4);
    ck_assert_int_eq(t.bytes, 3000);
    ck_assert_int_eq(t.delays, 1);
}

/* If a rank sends one byte more than fits into the messages in flight, a second delay is
 * counted. */
TEST(more_than_is_on_the_way_at_once_waits) {
    enum { MOST = MPI_PIECE * MPI_AT_ONCE };
    static const int64_t some[] = { 0, MOST, 2 * MOST }, more[] = { 0, MOST + 1, 2 * MOST + 2 };
    traffic t = { 0 };
    traffic_allgatherv(&t, some, 0, 2);
    ck_assert_int_eq(t.delays, 1);
    traffic_allgatherv(&t, more, 0, 2);
    ck_assert_int_eq(t.delays, 1 + 2);
    traffic_alltoallv(&t, more, some, 0, 2);
    traffic_alltoallv(&t, some, more, 0, 2);
    ck_assert_int_eq(t.delays, 1 + 2 + 2 + 2);
    ck_assert_int_eq(t.bytes, MOST + 3 * (MOST + 1));
}
