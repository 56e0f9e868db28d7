// Compares the heap with a simple model over thousands of random steps.

#include "pages/heap/page_heap_model.hpp"

#include <gtest/gtest.h>

#include "pages/failing_system.hpp"
#include "support/forced_shards.hpp"

namespace tensorpool::pages {
namespace {

using testing::Failing;
using testing::ForcedShards;
using testing::HeapHabits;
using testing::limited_options;
using testing::PageHeapModel;
using testing::plain_options;
using testing::Random;
using testing::run_at_random;
using testing::SystemCall;
using testing::TestHeap;

constexpr auto never = [](const PageRequest&) { return false; };

/// Runs the steps, then frees everything and checks that nothing is left.
std::string run(const HeapOptions& options, const HeapHabits& habits, std::uint32_t seed,
                unsigned steps) {
    TestHeap heap(options);
    PageHeapModel model(heap);
    Random random(seed);
    const auto is_rightly_refused = [&](const PageRequest& request) {
        if (options.max_capacity == 0) return false;
        // For an aligned span, additional pages before it may have to be committed.
        const std::size_t max_pages = model.pages_in_use() + request.pages + request.alignment - 1;
        return max_pages * page_bytes > options.max_capacity;
    };
    const std::string fault = run_at_random(model, heap, habits, random, steps, is_rightly_refused);
    if (!fault.empty()) return fault;
    model.free_all();
    heap.trim();
    if (heap.capacity() != 0) return "capacity is left";
    return model.fault(PageHeapModel::Depth::all_words);
}

/// The seed of the steps.
class PageHeapAtRandom : public ::testing::TestWithParam<std::uint32_t> {};

INSTANTIATE_TEST_SUITE_P(Seeds, PageHeapAtRandom, ::testing::Values(1U, 22U, 333U));

TEST_P(PageHeapAtRandom, AgreesWithTheModel) {
    EXPECT_EQ(run(plain_options(), {}, GetParam(), 3000), "");
}

TEST_P(PageHeapAtRandom, AgreesWithTheModelWithGrowthInSteps) {
    HeapOptions options = plain_options();
    options.growth = {.step = 1024 * page_bytes, .factor = 0.25, .fraction = 0.75};
    EXPECT_EQ(run(options, {}, GetParam(), 2000), "");
}

TEST_P(PageHeapAtRandom, ServesEveryRequestThatFitsUnderALimit) {
    EXPECT_EQ(run(limited_options(3000), {.allocate = 560, .max_alignment = 16}, GetParam(), 3000),
              "");
}

TEST_P(PageHeapAtRandom, AgreesWithTheModelWithSmallRetention) {
    HeapOptions options = limited_options(5000);
    options.retain.bytes = 50 * page_bytes;
    options.growth.step = 100 * page_bytes;
    EXPECT_EQ(run(options, {}, GetParam(), 2000), "");
}

TEST_P(PageHeapAtRandom, AgreesWithTheModelAcrossSeveralLoans) {
    const PageCount loan = address_space().usual_loan(0);
    const HeapHabits habits{.allocate = 400, .max_pages = loan / 2, .max_alignment = 4096};
    EXPECT_EQ(run(plain_options(), habits, GetParam(), 200), "");
}

TEST_P(PageHeapAtRandom, AgreesWithTheModelWithFourShards) {
    const ForcedShards forced(4);
    EXPECT_EQ(run(plain_options(), {}, GetParam(), 3000), "");
}

TEST_P(PageHeapAtRandom, AgreesWithTheModelWithFourShardsAndSmallRetention) {
    const ForcedShards forced(4);
    HeapOptions options = limited_options(5000);
    options.retain.bytes = 50 * page_bytes;
    options.growth.step = 100 * page_bytes;
    EXPECT_EQ(run(options, {}, GetParam(), 2000), "");
}

TEST_P(PageHeapAtRandom, FourShardsServeEveryRequestThatFitsUnderALimit) {
    const ForcedShards forced(4);
    EXPECT_EQ(run(limited_options(3000), {.allocate = 560, .max_alignment = 16}, GetParam(), 3000),
              "");
}

TEST_P(PageHeapAtRandom, AgreesWithTheModelBesideAnotherHeap) {
    TestHeap one(plain_options(), 1000);
    TestHeap other(plain_options(), 1001);
    PageHeapModel model_of_one(one);
    PageHeapModel model_of_other(other);
    Random random(GetParam());
    const HeapHabits habits{.max_pages = 5 * granule_pages};
    for (int turn = 0; turn < 40; ++turn) {
        ASSERT_EQ(run_at_random(model_of_one, one, habits, random, 20, never), "");
        ASSERT_EQ(run_at_random(model_of_other, other, habits, random, 20, never), "");
    }
}

// Each kind of call fails at times. A refused request must leave the heap consistent.
TEST_P(PageHeapAtRandom, AgreesWithTheModelWithFailingSystemCalls) {
    Random random(GetParam());
    for (const SystemCall call : {SystemCall::commit_pages, SystemCall::commit_records,
                                  SystemCall::decommit_pages, SystemCall::decommit_map}) {
        TestHeap heap(limited_options(3000));
        PageHeapModel model(heap);
        const auto always = [](const PageRequest&) { return true; };
        for (int turn = 0; turn < 100; ++turn) {
            {
                const Failing failing(call, random.below(3), 1 + random.below(3));
                for (int step = 0; step < 10; ++step) {
                    model.allocate({.pages = random.log_uniform(1, 300)});
                    if (model.count() != 0) model.free(random.below(model.count()));
                    if (random.one_in(5)) heap.trim();
                    ASSERT_EQ(model.fault(PageHeapModel::Depth::quick), "");
                }
            }
            ASSERT_EQ(run_at_random(model, heap, {}, random, 10, always), "");
        }
        model.free_all();
        heap.trim();
        EXPECT_EQ(heap.capacity(), 0U);
        EXPECT_EQ(model.fault(PageHeapModel::Depth::all_words), "");
    }
}

}  // namespace
}  // namespace tensorpool::pages
