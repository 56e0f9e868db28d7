// Every order of the steps of threads whose requests meet limits and ask holders. The code itself
// is tested in budget_holders_test.cpp.

#include <gtest/gtest.h>

#include <string_view>

#include "models/budget_reclaim.hpp"

namespace tensorpool::testing::reclaim {
namespace {

const std::vector<Scenario>& scenarios() {
    static const std::vector<Scenario> all = {
        // Two holders, each of which allocates while it gives; all ask both.
        {.soft = {},
         .hard = {4, 0, 0, 0},
         .holders = {{.budget = cache, .content = 2, .allocates_from = part},
                     {.budget = process, .content = 2, .allocates_from = request}},
         .scripts = {{{allocate(request, 1), release(request)},
                      {allocate(part, 2)},
                      {allocate(cache, 1), release(cache)}}}},
        // Limits at all levels; holders at two of them.
        {.soft = {},
         .hard = {6, 4, 2, 3},
         .holders = {{.budget = request, .content = 1},
                     {.budget = cache, .content = 2, .allocates_from = cache},
                     {.budget = process, .content = 2, .allocates_from = process}},
         .scripts = {{{allocate(request, 2)},
                      {allocate(cache, 2), release(cache)},
                      {allocate(process, 1)}}}},
        // Soft limits below hard ones.
        {.soft = {3, 2, 0, 1},
         .hard = {5, 4, 0, 3},
         .holders = {{.budget = cache, .content = 1, .allocates_from = process},
                     {.budget = part, .content = 2}},
         .scripts = {{{allocate(request, 2), release(request)},
                      {allocate(cache, 1)},
                      {allocate(process, 1)}}}},
        // A holder that cannot give comes first; one that gives to a part is needed by the process.
        {.soft = {},
         .hard = {4, 3, 0, 0},
         .holders = {{.budget = process, .content = 0}, {.budget = cache, .content = 3}},
         .scripts = {{{allocate(process, 2)}, {allocate(request, 1)}, {allocate(part, 1)}}}},
        // One holder ends its registration while it gives, a thread ends the other's.
        {.soft = {},
         .hard = {4, 0, 0, 0},
         .holders = {{.budget = cache, .content = 2, .allocates_from = process, .ends = 0},
                     {.budget = part, .content = 2}},
         .scripts = {{{allocate(request, 3), release(request)},
                      {allocate(process, 1), allocate(request, 1)},
                      {allocate(cache, 1), end(1)}}}},
        // The holder that is asked first reports all that it was asked for, and has none of it.
        {.soft = {},
         .hard = {5, 0, 0, 0},
         .holders = {{.budget = process, .content = 0, .boasts = true},
                     {.budget = cache, .content = 2, .allocates_from = part},
                     {.budget = part, .content = 2}},
         .scripts = {{{allocate(request, 3)},
                      {allocate(part, 2), release(part)},
                      {allocate(cache, 1)}}}},
        // It has a part of what it reports, and there is a soft limit.
        {.soft = {3, 0, 0, 0},
         .hard = {4, 3, 0, 0},
         .holders = {{.budget = part, .content = 1, .boasts = true},
                     {.budget = cache, .content = 2}},
         .scripts = {{{allocate(request, 2), release(request)},
                      {allocate(process, 1)},
                      {allocate(cache, 1), release(cache)}}}},
        // Many calls under limits of both kinds at all levels.
        {.soft = {6, 4, 0, 2},
         .hard = {8, 5, 3, 3},
         .holders = {{.budget = cache, .content = 2, .allocates_from = part},
                     {.budget = part, .content = 2, .allocates_from = process},
                     {.budget = process, .content = 3, .allocates_from = cache}},
         .scripts = {{{allocate(request, 2), release(request)},
                      {allocate(cache, 2), release(cache), allocate(cache, 3)},
                      {allocate(process, 3)}}}},
        // Nothing can be given.
        {.soft = {2, 0, 0, 0},
         .hard = {3, 0, 0, 0},
         .holders = {{.budget = process, .content = 0}, {.budget = part, .content = 0}},
         .scripts = {{{allocate(request, 3), release(request)},
                      {allocate(part, 4)},
                      {allocate(process, 1), release(process), allocate(cache, 1)}}}},
    };
    return all;
}

bool is_found(Fault fault, const char* expected) {
    return std::ranges::any_of(scenarios(), [&](const Scenario& scenario) {
        return std::string_view(Model(fault, scenario).walk()) == expected;
    });
}

// The walk runs in one thread, so ThreadSanitizer has nothing to find in it, and takes minutes for
// scenarios of many states.
#if defined(__SANITIZE_THREAD__)
constexpr std::size_t max_states = 50'000;
#else
constexpr std::size_t max_states = SIZE_MAX;
#endif

class BudgetReclaimScenario : public ::testing::TestWithParam<std::size_t> {};

INSTANTIATE_TEST_SUITE_P(Scenarios, BudgetReclaimScenario,
                         ::testing::Range(std::size_t{0}, scenarios().size()));

TEST_P(BudgetReclaimScenario, NoOrderOfStepsBlocksExceedsLosesOrRefusesTooMuch) {
    Model model(Fault::none, scenarios()[GetParam()]);
    model.stop_after(max_states);
    EXPECT_STREQ(model.walk(), "");
    EXPECT_GT(model.states(), 1000U);
}

// A limit of the protocol: a holder that gives may end its own registration, but none that another
// thread may be asking.
TEST(BudgetReclaimModel, HoldersThatEndEachOthersRegistrationsWaitForever) {
    const Scenario scenario = {.soft = {},
                               .hard = {0, 0, 2, 2},
                               .holders = {{.budget = cache, .content = 2, .ends = 1},
                                           {.budget = request, .content = 2, .ends = 0}},
                               .scripts = {{{allocate(request, 1)}, {allocate(cache, 2)}, {}}}};
    EXPECT_STREQ(Model(Fault::none, scenario).walk(), "a thread waits forever");
}

TEST(BudgetReclaimModel, FindsEachPlantedFault) {
    EXPECT_TRUE(is_found(Fault::nested_asks, "a thread waits forever"));
    EXPECT_TRUE(is_found(Fault::asks_under_lock, "a thread waits forever"));
    EXPECT_TRUE(is_found(Fault::waits_for_itself, "a thread waits forever"));
    EXPECT_TRUE(is_found(Fault::keeps_asked_by, "a thread waits forever"));
    EXPECT_TRUE(is_found(Fault::end_does_not_wait, "a holder is asked after its end"));
    EXPECT_TRUE(
        is_found(Fault::skips_later_rounds, "a request is refused although a holder could give"));
    EXPECT_TRUE(is_found(Fault::asks_other_rounds, "the threads go on without end"));
    EXPECT_TRUE(is_found(Fault::counts_own_gain, "a request is refused that would fit"));
    EXPECT_TRUE(is_found(Fault::checks_apart, "a hard limit is exceeded"));
    EXPECT_TRUE(is_found(Fault::refunds_one_level, "a charge is lost"));
    EXPECT_TRUE(is_found(Fault::believes_holders, "the threads go on without end"));
    EXPECT_TRUE(
        is_found(Fault::asks_no_others, "a request is refused although a holder could give"));
    EXPECT_TRUE(
        is_found(Fault::refuses_before_all, "a request is refused although a holder could give"));
}

}  // namespace
}  // namespace tensorpool::testing::reclaim
