/* weft/weft.hpp - for C++14 and later: handles that free their objects, arrays that know their
 * sizes, exceptions for failures.
 *
 * A handle owns the object that a wf_..._new function returned, and frees it. It converts to the
 * object's pointer, so that all functions of weft.h accept it:
 *
 *     weft::graph g{ wf_graph_new(nullptr) };
 *     wf_tensor *x = wf_input(g, "x", WF_F32, 2, weft::shape{ 2, 3 });
 *     wf_tensor *y = wf_sum(wf_square(x), WF_AXIS(-1), false);
 *     weft::plan p = weft::make_plan(g, { y }, { x });           throws what wf_error(g) says
 *     weft::feed(p, x, std::vector<float>{ 1, 2, 3, 4, 5, 6 });
 *     weft::run(p);
 *     std::vector<float> squares = weft::fetch<float>(p, y);     14, 77 */
#ifndef WEFT_WEFT_HPP
#define WEFT_WEFT_HPP

#if __cplusplus < 201402L && !defined(_MSC_VER)
#error "weft.hpp is for C++14 and later: -std=c++14, or -std=c++17"
#endif

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "weft.h"

namespace weft {

struct error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/* ---- handles: a pointer and the function that frees it. A graph outlives its plans ------------- */

template <class T, void (*release)(T *)> struct releaser {
    void operator()(T *made) const noexcept { release(made); }
};
template <class T, void (*release)(T *)>
class handle : public std::unique_ptr<T, releaser<T, release>> {
  public:
    using std::unique_ptr<T, releaser<T, release>>::unique_ptr;
    operator T *() const noexcept { return this->get(); }
};
using graph = handle<wf_graph, wf_graph_free>;
using plan = handle<wf_plan, wf_plan_free>;
using pool = handle<wf_pool, wf_pool_free>;
using state = handle<wf_state, wf_state_free>;
using file = handle<wf_file, wf_file_free>;
using model = handle<wf_model, wf_model_free>;
using trainer = handle<wf_trainer, wf_trainer_free>;
using decoder = handle<wf_decoder, wf_decoder_free>;

/* An array of sizes, for arguments that are pointers to sizes, such as a shape or the dims of
 * wf_reshape. A temporary one is valid only during the call. */
struct shape {
    int64_t size[WF_MAX_DIMS] = {};
    shape(std::initializer_list<int64_t> sizes) {
        if (sizes.size() > WF_MAX_DIMS) throw error("a shape of more than 8 axes");
        std::copy(sizes.begin(), sizes.end(), size);
    }
    operator const int64_t *() const noexcept { return size; }
};

/* ---- failures ---------------------------------------------------------------------------------- */

inline void check(const wf_graph *g) {
    if (!wf_ok(g)) throw error(wf_error(g));
}
/* These throw if a function of plans, or of trainers, returned false: check(p, wf_bind(p, "B",
 * 16)). */
inline void check(const wf_plan *p, bool done) {
    if (!done) throw error(wf_plan_error(p));
}
inline void check(const wf_trainer *t, bool done) {
    if (!done) throw error(wf_trainer_error(t));
}

/* ---- plans ------------------------------------------------------------------------------------- */

/* Compiles a plan with these fetches and feeds, which replace those of the options. */
inline plan make_plan(wf_graph *g, const std::vector<wf_tensor *> &fetch,
                      const std::vector<wf_tensor *> &feed, wf_plan_options options = {}) {
    check(g);
    options.fetch = fetch.data(), options.n_fetch = static_cast<int>(fetch.size());
    options.feed = feed.data(), options.n_feed = static_cast<int>(feed.size());
    plan p(wf_plan_new(g, &options));
    check(p, wf_plan_ok(p));
    return p;
}
inline void bind(wf_plan *p, const char *extent, int64_t size) {
    check(p, wf_bind(p, extent, size));
}
inline void run(wf_plan *p) {
    check(p, wf_run(p));
}

template <class T> constexpr bool is_dtype(wf_dtype dtype) {
    return (std::is_same<T, float>::value && dtype == WF_F32) ||
           (std::is_same<T, double>::value && dtype == WF_F64) ||
           (std::is_same<T, int32_t>::value && dtype == WF_I32);
}
template <class T> void check_dtype(const wf_tensor *t) {
    if (t && !is_dtype<T>(t->dtype))
        throw error(std::string(t->name ? t->name : "a tensor") + " is " + wf_dtype_name(t->dtype));
}

/* Feeds values from a vector, an array, or any class with data() and size(). The element type is
 * float, double or int32_t, the same as the tensor's. The number of values must be that of the
 * tensor with the bound extents. */
template <class T> void feed(wf_plan *p, const wf_tensor *t, const T *values, size_t n) {
    check_dtype<T>(t);
    check(p, wf_feed(p, t, values, n * sizeof(T)));
}
template <class Values> void feed(wf_plan *p, const wf_tensor *t, const Values &values) {
    feed(p, t, values.data(), values.size());
}
template <class T, size_t n> void feed(wf_plan *p, const wf_tensor *t, const T (&values)[n]) {
    feed(p, t, values, n);
}
template <class T> void feed(wf_plan *p, const wf_tensor *t, std::initializer_list<T> values) {
    feed(p, t, values.begin(), values.size());
}
template <class T> std::vector<T> fetch(wf_plan *p, const wf_tensor *t) {
    check_dtype<T>(t);
    std::vector<T> values(wf_bound_bytes(p, t) / sizeof(T));
    check(p, wf_fetch(p, t, values.data(), values.size() * sizeof(T)));
    return values;
}

} // namespace weft

#endif
