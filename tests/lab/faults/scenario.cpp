#include "lab/faults/scenario.hpp"

#include <array>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "models/pattern.hpp"
#include "models/pool_model.hpp"

namespace tensorpool::faults {
namespace {

using testing::mismatch;
using testing::PoolModel;
using testing::Refusals;
using testing::Subject;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

/// Makes a call that may fail as often as the refusals allow. Returns false if it failed.
bool attempt(Failures failures, const std::function<bool()>& call) {
    if (call()) return true;
    if (failures == Failures::none) mismatch("a call failed without a refusal");
    if (failures == Failures::one && !call()) mismatch("a call failed again after one refusal");
    return failures == Failures::one;
}

/// A pool and its model; empty if the pool could not be constructed.
class Case {
public:
    Case(const PoolOptions& options, Failures failures) : failures_(failures) {
        attempt(failures, [&] {
            try {
                pool_.emplace(options);
                return true;
            } catch (const AllocationError&) {
                return false;
            }
        });
        if (!pool_) return;
        subject_.emplace(*pool_);
        model_.emplace(*subject_, options, Refusals::may_happen);
    }

    explicit operator bool() const { return pool_.has_value(); }
    MemoryPool& pool() { return *pool_; }
    PoolModel& model() { return *model_; }
    void no_more_failures() { failures_ = Failures::none; }

    bool allocate(std::size_t bytes) {
        return attempt(failures_, [&] { return model_->allocate(bytes); });
    }
    void allocate_many(std::size_t count, std::size_t bytes) {
        while (count-- != 0) allocate(bytes);
    }
    void allocate(std::size_t bytes, std::size_t alignment) {
        attempt(failures_, [&] { return model_->allocate(bytes, alignment); });
    }
    void allocate_zeroed(std::size_t bytes) {
        attempt(failures_, [&] { return model_->allocate_zeroed(bytes, 1); });
    }
    void reallocate(std::size_t bytes) {
        if (model_->count() == 0) return;
        attempt(failures_, [&] { return model_->reallocate(0, bytes); });
    }
    void reserve(std::size_t bytes) {
        attempt(failures_, [&] { return model_->reserve(bytes); });
    }
    void free_half() {
        for (std::size_t i = model_->count() / 2; i != 0; --i) {
            model_->deallocate(i * 7, static_cast<PoolModel::How>(i % 4));
        }
    }

private:
    Failures failures_;
    std::optional<MemoryPool> pool_;
    std::optional<Subject> subject_;
    std::optional<PoolModel> model_;
};

PoolOptions options(const char* name) {
    PoolOptions made;
    made.name = name;
    made.checks = Checks::off;
    made.growth.step = 512 * kib;
    return made;
}

void use_every_bucket(Case& one) {
    for (std::size_t bytes = 64; bytes <= 64 * kib; bytes *= 2) {
        one.allocate_many(std::min<std::size_t>(64 * kib / bytes + 3, 70), bytes);
    }
}

void use_large_blocks(Case& one) {
    for (const std::size_t bytes : {100 * kib, 300 * kib, 2 * mib + 1}) one.allocate(bytes);
    constexpr std::size_t alignments[] = {128, 4096, 64 * kib, 2 * mib};
    for (const std::size_t alignment : alignments) one.allocate(5000, alignment);
    one.allocate_zeroed(100);
    one.allocate_zeroed(200 * kib);
    constexpr std::size_t sizes[] = {10 * kib, 150 * kib, 400 * kib, 220 * kib, 50};
    for (const std::size_t bytes : sizes) one.reallocate(bytes);
}

// Uses the pool from threads, two of them one after the other and two at once. Each allocates,
// frees and ends.
void use_from_threads(Case& one) {
    constexpr std::size_t bytes = 300;
    std::uint64_t made = 0;
    std::uint64_t failed = 0;
    std::mutex mutex;
    const auto work = [&] {
        std::array<void*, 100> blocks{};
        std::uint64_t got = 0;
        for (void*& block : blocks) got += (block = one.pool().try_allocate(bytes)) != nullptr;
        for (void* const block : blocks) one.pool().deallocate(block, bytes);
        const std::lock_guard guard(mutex);
        made += got;
        failed += blocks.size() - got;
    };
    std::thread(work).join();
    std::thread(work).join();
    std::thread first(work);
    std::thread second(work);
    first.join();
    second.join();
    one.model().count_others(made, bytes, failed);
}

void use_all_of_it(Case& one) {
    use_every_bucket(one);
    use_from_threads(one);
    use_large_blocks(one);
    one.free_half();
    one.model().trim();
    one.reserve(one.pool().get_total_capacity() + 3 * mib);
    use_every_bucket(one);
    use_large_blocks(one);
    one.model().check();
}

void fill_to_the_limit(Failures failures) {
    PoolOptions limited = options("limited");
    limited.max_capacity = 1 * mib;
    Case one(limited, failures);
    if (!one) return;
    while (one.model().allocate(3000)) {
    }
    one.model().deallocate_all();
    one.allocate(700 * kib);
    one.model().deallocate_all();
}

void use_options(Failures failures) {
    PoolOptions checked = options("checked");
    checked.checks = Checks::full;
    PoolOptions prompt = options("prompt");
    prompt.retain.milliseconds = 0;
    prompt.huge_pages = HugePages::always;
    prompt.numa.placement = NumaPolicy::Placement::interleave;
    PoolOptions prepared = options("prepared");
    prepared.initial_capacity = 1 * mib;
    prepared.numa.placement = NumaPolicy::Placement::prefer;
    for (const PoolOptions& its_options : {checked, prompt, prepared}) {
        Case one(its_options, failures);
        if (!one) continue;
        one.allocate_many(10, 64);
        one.allocate_many(4, 40 * kib);
        use_large_blocks(one);
        one.free_half();
        one.model().check();
        one.model().deallocate_all();
    }
}

// Uses modes whose statistics the model does not predict.
void use_guards(Checks checks, Failures failures) {
    PoolOptions made = options("guards");
    made.checks = checks;
    made.guard_share = 1;
    Case one(made, failures);
    if (!one) return;
    for (const std::size_t bytes : {64, 1000, 5000, 100'000, 64, 1000, 300'000}) {
        // Of large ones fewer, because each page that is written is a fault.
        std::vector<void*> blocks(bytes > 64 * kib ? 3 : 20);
        for (void*& block : blocks) {
            attempt(failures, [&] { return (block = one.pool().try_allocate(bytes)) != nullptr; });
            if (block != nullptr) testing::Pattern(7).write(block, bytes);
        }
        for (void* const block : blocks) one.pool().deallocate(block);
    }
    one.pool().trim();
    const std::size_t in_use = one.pool().get_total_allocated();
    if (in_use != 0) mismatch("%zu B are in use, expected none", in_use);
}

}  // namespace

void run_scenario(Failures failures) {
    fill_to_the_limit(failures);
    use_options(failures);
    use_guards(Checks::sampled, failures);
    use_guards(Checks::hardened, failures);
    Case one(options("whole"), failures);
    if (one) use_all_of_it(one);

    refuse_nothing();
    one.no_more_failures();
    if (!one) return;
    use_all_of_it(one);
    one.model().deallocate_all();
    one.model().trim();
    one.model().check_empty();
}

void run_scenario_with_global_pool(Failures failures) {
    MemoryPool& pool = get_global_memory_pool();
    const std::size_t in_use = pool.get_total_allocated();
    constexpr std::size_t sizes[] = {100, 5 * kib, 300 * kib};
    for (const std::size_t bytes : sizes) {
        void* block = nullptr;
        attempt(failures, [&] { return (block = pool.try_allocate(bytes)) != nullptr; });
        if (block != nullptr && !pool.owns(block)) mismatch("a block is not owned");
        pool.deallocate(block);
    }
    refuse_nothing();
    void* const block = pool.allocate(1 * mib);
    pool.deallocate(block, 1 * mib);
    pool.trim();
    const std::size_t now = pool.get_total_allocated();
    if (now != in_use) mismatch("%zu B are in use, expected %zu", now, in_use);
}

}  // namespace tensorpool::faults
