// A thread is stopped at each instruction of a call while another thread takes back all blocks in
// its magazines. No block may be allocated twice, and none may be lost.

#ifdef __x86_64__

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "blocks/pool_parts.hpp"
#include "blocks/take_back.hpp"
#include "blocks/thread_registry.hpp"
#include "support/child_process.hpp"
#include "support/process_metrics.hpp"
#include "support/stopped_thread_linux.hpp"

namespace tensorpool::blocks {
namespace {

using testing::PoolParts;
using testing::StoppedThread;

constexpr unsigned bucket = 4;

enum class Call { allocate, deallocate };

class Stopped {
public:
    explicit Stopped(Call call) : call_(call) {}

    unsigned instructions() {
        prepare();
        cache_ = thread_registry().attach(pool_.set);
        return StoppedThread::instructions_of([&] { make_call(); });
    }

    bool keeps_blocks_apart(unsigned instructions) {
        StoppedThread::stop(
            instructions, [&] { prepare(); }, [&] { make_call(); },
            [&] {
                for (int i = 0; i < 2; ++i) {
                    blocks::take_back(pool_.set, TakeFrom::everyone, PoolParts::path());
                }
            });
        // The stopped thread has ended and given back its remaining blocks.
        pool_.drain();
        return pool_.in_use_bytes() == held_.size() * detail::bucket_bytes(bucket) &&
               pool_.parked_bytes() == 0 && others_fill_what_is_free();
    }

private:
    void prepare() {
        cache_ = thread_registry().attach(pool_.set);
        held_ = PoolParts::allocate(*cache_, bucket, 10);
        for (int i = 0; i < 4; ++i) {
            PoolParts::deallocate(*cache_, bucket, held_.back());
            held_.pop_back();
        }
        held_.reserve(held_.size() + 1);
    }

    void make_call() {
        if (call_ == Call::allocate) {
            held_.push_back(PoolParts::allocate(*cache_, bucket));
        } else {
            PoolParts::deallocate(*cache_, bucket, held_.back());
            held_.pop_back();
        }
    }

    bool others_fill_what_is_free() {
        const std::size_t capacity = pool_.capacity_of(bucket);
        std::set<void*> all(held_.begin(), held_.end());
        const std::size_t count = bucket_layouts[bucket].blocks;
        const auto more = pool_.allocate_direct(bucket, count - held_.size());
        all.insert(more.begin(), more.end());
        return all.size() == count && pool_.capacity_of(bucket) == capacity;
    }

    const Call call_;
    PoolParts pool_;
    Cache* cache_ = nullptr;
    std::vector<void*> held_;
};

class StoppedCall : public ::testing::TestWithParam<Call> {};

INSTANTIATE_TEST_SUITE_P(Call, StoppedCall, ::testing::Values(Call::allocate, Call::deallocate),
                         [](const auto& call) {
                             return call.param == Call::allocate ? "allocate" : "deallocate";
                         });

TEST_P(StoppedCall, TakeBackDuringAStoppedCallNeitherDuplicatesNorLosesBlocks) {
    if (testing::sanitized()) GTEST_SKIP() << "sanitizers add too many instructions";
    EXPECT_TRUE(testing::holds_in_child([] {
        const unsigned all = Stopped(GetParam()).instructions();
        for (unsigned instructions = 1; instructions <= all; ++instructions) {
            if (!Stopped(GetParam()).keeps_blocks_apart(instructions)) return false;
        }
        return all > 10;
    }));
}

}  // namespace
}  // namespace tensorpool::blocks

#endif
