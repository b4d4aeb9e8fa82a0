/* spiral.cpp - C++: two spirals are told apart by a network of two hidden layers.
 *
 * Shows weft.hpp: nothing is freed by hand, vectors are fed and fetched as they are, and a failure
 * is thrown as an exception with the library's message. */
#include <cmath>
#include <cstdio>
#include <weft/weft.hpp>

constexpr int points = 200, steps = 600;

int main() try {
    weft::graph g(wf_graph_new(nullptr));
    const int64_t N = wf_extent(g, "N", points);
    wf_tensor *x = wf_input(g, "x", WF_F32, 2, weft::shape{ N, 2 });
    wf_tensor *arm = wf_input(g, "arm", WF_I32, 1, weft::shape{ N });
    const wf_linear_layer first = wf_linear_new(g, "first", 2, 32, true);
    const wf_linear_layer second = wf_linear_new(g, "second", 32, 32, true);
    const wf_linear_layer last = wf_linear_new(g, "last", 32, 2, true);
    wf_tensor *hidden = wf_tanh(wf_linear(&second, wf_tanh(wf_linear(&first, x))));
    wf_tensor *logits = wf_linear(&last, hidden);
    wf_tensor *answer = wf_argmax(logits, -1);
    const wf_cross_entropy_result loss = wf_cross_entropy(logits, arm, 0, -1);

    wf_trainer_options options{};
    options.optimizer = wf_optimizer_defaults(WF_ADAM), options.schedule.peak = 0.01;
    const weft::trainer trainer(wf_trainer_new(g, loss.loss, loss.count, &options));
    wf_plan *train = wf_trainer_plan(trainer);
    const weft::plan look = weft::make_plan(g, { answer }, { x });

    std::vector<float> xs;
    std::vector<int32_t> arms;
    for (int i = 0; i < points; i++) { /* two arms, half a turn apart */
        const double radius = 0.2 + 0.8 * i / points, angle = 8 * radius + 3.14159265 * (i % 2);
        xs.push_back(static_cast<float>(radius * std::cos(angle)));
        xs.push_back(static_cast<float>(radius * std::sin(angle)));
        arms.push_back(i % 2);
    }
    weft::bind(train, "N", points), weft::bind(look, "N", points);
    weft::feed(train, x, xs), weft::feed(train, arm, arms), weft::feed(look, x, xs);
    for (int step = 1; step <= steps; step++) {
        wf_progress now;
        weft::check(trainer, wf_trainer_begin(trainer, 1, nullptr, nullptr) &&
                                 wf_trainer_add(trainer, 0) && wf_trainer_update(trainer, &now));
        if (step % 200 == 0) std::printf("step %d: loss %.4f\n", step, now.loss);
    }
    weft::run(look);
    const std::vector<int32_t> answers = weft::fetch<int32_t>(look, answer);
    int right = 0;
    for (size_t i = 0; i < points; i++) right += answers[i] == arms[i];
    std::printf("%d of %d points are on the arm they are said to be\n", right, points);

    try { /* three numbers are no points */
        weft::feed(look, x, std::vector<float>{ 1, 2, 3 });
    } catch (const weft::error &e) {
        std::printf("refused: %s\n", e.what());
        return right < points * 95 / 100;
    }
    return 1;
} catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
