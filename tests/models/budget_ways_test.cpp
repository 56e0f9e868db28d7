// Each way to get memory, and which budget is charged for it: the table in the guide
// (include/tensorpool/README.md#what-a-budget-counts), line by line. Arrays of NumPy and tensors of
// PyTorch are in tests/adaptors, malloc in tests/interpose/budgets.cpp.

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tensorpool/budget.hpp>
#include <tensorpool/context.hpp>
#include <tensorpool/device/caching_allocator.hpp>
#include <tensorpool/device/host_backend.hpp>
#include <tensorpool/device/pinned_allocator.hpp>
#include <tensorpool/dlpack.hpp>
#include <tensorpool/freeze.hpp>
#include <tensorpool/pooled_allocation.hpp>
#include <tensorpool/scratch.hpp>
#include <tensorpool/serve_scope.hpp>
#include <tensorpool/stash.hpp>

namespace tensorpool {
namespace {

constexpr std::size_t small = 1000;
constexpr std::size_t large = 300'000;

/// Memory that is taken in one way.
class Memory {
public:
    virtual ~Memory() = default;
    /// Throws what the way throws if it is refused.
    virtual void take() = 0;
    virtual void end() = 0;
    /// Gives back what is free.
    virtual void give_back() {}
    /// The bytes that may be used of what was taken.
    virtual std::size_t usable() const { return 0; }
    /// The bytes that the source has committed.
    virtual std::size_t committed() const { return 0; }
};

class PoolMemory : public Memory {
public:
    PoolMemory(Budget* own, std::size_t bytes)
        : pool_({.name = "own", .budget = own}), bytes_(bytes) {}
    ~PoolMemory() override { end(); }
    void take() override { block_ = pool_.allocate(bytes_); }
    void end() override { pool_.deallocate(std::exchange(block_, nullptr)); }
    void give_back() override { pool_.trim(); }
    std::size_t usable() const override { return pool_.usable_size(block_); }
    std::size_t committed() const override { return pool_.statistics().capacity_bytes; }

protected:
    MemoryPool pool_;
    std::size_t bytes_;
    void* block_ = nullptr;
};

/// The block is allocated outside of any scope, and resized in the one of the test.
class ResizedMemory final : public PoolMemory {
public:
    ResizedMemory(Budget* own, std::size_t from, std::size_t to)
        : PoolMemory(own, to), from_(own == nullptr ? from : 0) {
        block_ = pool_.allocate(from_);
    }
    void take() override {
        block_ = pool_.reallocate(block_, from_, bytes_);
        from_ = bytes_;
    }
    void end() override {
        PoolMemory::end();
        from_ = 0;
    }

private:
    std::size_t from_;
};

/// The block's handle ends in another place.
class HandedMemory final : public PoolMemory {
public:
    explicit HandedMemory(Budget* own) : PoolMemory(own, large) {}
    void take() override {
        array_ = PooledArray<float>(pool_, large / sizeof(float));
        block_ = nullptr;
        tensor_ = to_dlpack(std::move(array_));
    }
    void end() override {
        if (tensor_ == nullptr) return;
        std::thread([this] { tensor_->deleter(tensor_); }).join();
        tensor_ = nullptr;
    }
    std::size_t usable() const override { return pool_.usable_size(tensor_->dl_tensor.data); }

private:
    PooledArray<float> array_;
    DLManagedTensor* tensor_ = nullptr;
};

/// The process may not be allowed to freeze blocks.
class FrozenMemory final : public PoolMemory {
public:
    explicit FrozenMemory(Budget* own) : PoolMemory(own, large) {}
    void take() override {
        PoolMemory::take();
        try {
            freeze(pool_, block_);
        } catch (const FreezeError&) {
        }
    }
};

class StashedMemory final : public Memory {
public:
    explicit StashedMemory(Budget* own) : pool_({.name = "at rest", .budget = own}) {}
    void take() override {
        std::vector<std::byte> content(large);
        for (std::uint32_t i = 0, word = 1; i != content.size(); ++i, word = word * 69069 + 1)
            content[i] = static_cast<std::byte>(word >> 24);
        stash_ = Stash(std::span(std::as_const(content)), {.pool = &pool_});
    }
    void end() override { stash_ = Stash(); }
    void give_back() override { pool_.trim(); }
    std::size_t usable() const override { return stash_.bytes_at_rest(); }
    std::size_t committed() const override { return pool_.statistics().capacity_bytes; }

private:
    MemoryPool pool_;
    Stash stash_;
};

/// A tensor whose memory another library allocated.
class ImportedMemory final : public Memory {
public:
    explicit ImportedMemory(Budget*) {}
    void take() override {
        tensor_.dl_tensor = {.data = elements_.data(),
                             .device = {kDLCPU, 0},
                             .ndim = 1,
                             .dtype = {kDLFloat, 32, 1},
                             .shape = &count_,
                             .strides = nullptr,
                             .byte_offset = 0};
        imported_.emplace(&tensor_);
    }
    void end() override { imported_.reset(); }

private:
    std::int64_t count_ = 1000;
    std::vector<float> elements_ = std::vector<float>(1000);
    DLManagedTensor tensor_ = {};
    std::optional<DlpackTensor<float>> imported_;
};

/// What handles of a source own.
template <class Source, class Options>
class HeldMemory : public Memory {
public:
    explicit HeldMemory(Options options) : source_(std::move(options)) {}
    void take() override { block_ = PooledAllocation(source_, large); }
    void end() override { block_.reset(); }
    void give_back() override { arena_of(source_).trim(); }
    std::size_t committed() const override { return source_.capacity(); }

protected:
    static Arena& arena_of(Arena& arena) { return arena; }
    static Arena& arena_of(Context& context) { return context.arena(); }

    Source source_;
    PooledAllocation block_;
};

class ScratchMemory final : public Memory {
public:
    explicit ScratchMemory(Budget*) {}
    ~ScratchMemory() override { give_back(); }
    void take() override { block_ = PooledAllocation(Scratch::local(), large); }
    void end() override { block_.reset(); }
    void give_back() override { Scratch::local().trim(); }
    std::size_t committed() const override { return Scratch::local().capacity(); }

private:
    PooledAllocation block_;
};

/// The plan is made before.
class PlannedMemory final : public Memory {
public:
    explicit PlannedMemory(Budget* own)
        : arena_({.name = "planned", .pool = &pool_, .budget = own}) {
        iterate();
        arena_.relearn();
        iterate();
    }
    void take() override {
        arena_.begin_iteration();
        block_ = PooledAllocation(arena_, large);
    }
    void end() override {
        if (!block_) return;
        block_.reset();
        arena_.end_iteration();
    }
    void give_back() override { arena_.relearn(); }
    std::size_t committed() const override { return arena_.statistics().capacity_bytes; }

private:
    void iterate() {
        take();
        end();
    }

    MemoryPool pool_{PoolOptions{.name = "of the plan"}};
    PlannedArena arena_;
    PooledAllocation block_;
};

/// The plan is made before, and serves the global pool.
class ServedMemory final : public Memory {
public:
    explicit ServedMemory(Budget* own) : arena_({.name = "served", .budget = own}) {
        take();
        end();
    }
    void take() override {
        scope_.emplace(arena_);
        block_ = PooledAllocation(large);
    }
    void end() override {
        block_.reset();
        scope_.reset();
    }
    void give_back() override { arena_.relearn(); }
    std::size_t committed() const override { return arena_.statistics().capacity_bytes; }

private:
    PlannedArena arena_;
    std::optional<ServeScope> scope_;
    PooledAllocation block_;
};

template <class Allocator, class Options>
class DeviceMemory final : public Memory {
public:
    explicit DeviceMemory(Budget* own) : allocator_(backend_, 0, with(own)) {}
    void take() override { block_ = PooledAllocation(allocator_, large, StreamHandle()); }
    void end() override { block_.reset(); }
    void give_back() override { allocator_.trim(); }
    std::size_t committed() const override { return allocator_.statistics().capacity_bytes; }

private:
    static Options with(Budget* own) {
        Options options;
        options.budget = own;
        return options;
    }

    HostBackend backend_;
    Allocator allocator_;
    PooledAllocation block_;
};

ArenaOptions arena_options(Budget* own) {
    ArenaOptions options;
    options.initial_capacity = 0;
    options.budget = own;
    return options;
}
ContextOptions context_options(Budget* own) {
    ContextOptions options;
    options.arena = arena_options(own);
    return options;
}

template <class Way, class... Arguments>
auto made(Arguments... arguments) {
    return [=](Budget* own) -> std::unique_ptr<Memory> {
        return std::make_unique<Way>(own, arguments...);
    };
}
using Make = std::function<std::unique_ptr<Memory>(Budget* own)>;

/// By the first cell of the row.
const std::vector<std::pair<std::string, Make>>& ways() {
    using OfArena = HeldMemory<Arena, ArenaOptions>;
    using OfContext = HeldMemory<Context, ContextOptions>;
    static const std::vector<std::pair<std::string, Make>> all = {
        {"block of a pool, up to 64 KiB, also of finer sizes", made<PoolMemory>(small)},
        {"larger block of a pool", made<PoolMemory>(large)},
        {"block that `reallocate` lengthens", made<ResizedMemory>(small, large)},
        {"block that `reallocate` shortens", made<ResizedMemory>(large, large / 2)},
        {"block handed to another thread or library", made<HandedMemory>()},
        {"frozen block", made<FrozenMemory>()},
        {"content of a `Stash` in memory", made<StashedMemory>()},
        {"tensor taken over by `from_dlpack`", made<ImportedMemory>()},
        {"block of an arena",
         [](Budget* own) { return std::make_unique<OfArena>(arena_options(own)); }},
        {"block of a context's arena",
         [](Budget* own) { return std::make_unique<OfContext>(context_options(own)); }},
        {"block of a scratch", made<ScratchMemory>()},
        {"block of a planned arena", made<PlannedMemory>()},
        {"block of the global pool in a `ServeScope`", made<ServedMemory>()},
        {"block of a `CachingAllocator`", made<DeviceMemory<CachingAllocator, CachingOptions>>()},
        {"block of a `PinnedAllocator`", made<DeviceMemory<PinnedAllocator, PinnedOptions>>()},
    };
    return all;
}

std::string error_of(Memory& memory) {
    try {
        memory.take();
    } catch (const DeviceAllocationError&) {
        return "`DeviceAllocationError`";
    } catch (const AllocationError&) {
        return "`AllocationError`";
    } catch (const std::exception& error) {
        return error.what();
    }
    return "none";
}

/// A row of the table.
struct Row {
    std::string own;      ///< what the budget of its own is charged
    std::string scope;    ///< what the budget of a scope is charged
    std::string until;    ///< when that ends
    std::string refused;  ///< how a request beyond a limit ends
};

bool begins_with(const std::string& text, const std::string& part) {
    return text.compare(0, part.size(), part) == 0;
}

std::map<std::string, Row> table_of_guide() {
    std::ifstream guide(TENSORPOOL_GUIDE);
    std::map<std::string, Row> rows;
    bool is_here = false;
    for (std::string line; std::getline(guide, line);) {
        is_here = begins_with(line, "### What a budget counts") || (is_here && line[0] != '#');
        if (!is_here || !begins_with(line, "| ") || begins_with(line, "| ---")) continue;
        std::vector<std::string> cells;
        std::size_t from = 2;
        for (std::size_t at; (at = line.find(" |", from)) != std::string::npos; from = at + 3) {
            cells.push_back(line.substr(from, at - from));
        }
        EXPECT_EQ(cells.size(), 5U) << line;
        if (cells.size() == 5) rows[cells[0]] = {cells[1], cells[2], cells[3], cells[4]};
    }
    rows.erase("memory");
    return rows;
}

void expect_ended(const std::string& until, Memory& memory, const Budget& budget) {
    memory.end();
    if (begins_with(until, "the block is freed")) {
        EXPECT_EQ(budget.in_use(), 0U);
        return;
    }
    EXPECT_NE(budget.in_use(), 0U) << until;
    memory.give_back();
    EXPECT_EQ(budget.in_use(), 0U) << until;
}

void check_own(const Row& row, const Make& make) {
    Budget own("own");
    Budget scoped("scope");
    const std::unique_ptr<Memory> memory = make(&own);
    const BudgetScope scope(scoped);
    memory->take();
    if (row.own == "none") {
        EXPECT_EQ(own.in_use(), 0U);
    } else {
        EXPECT_EQ(scoped.in_use(), 0U) << "both budgets";
        EXPECT_EQ(own.in_use(), memory->committed()) << row.own;
        EXPECT_NE(own.in_use(), 0U) << row.own;
    }
    memory->end();
    memory->give_back();
    own.set_limits({.hard = 100});
    if (row.own != "none" && row.refused != "the pool serves it") {
        EXPECT_EQ(error_of(*memory), row.refused);
        EXPECT_EQ(own.in_use(), 0U) << "a refused request charges nothing";
    }
}

void check_scope(const Row& row, const Make& make) {
    Budget process("process");
    Budget scoped(process, "scope");
    const std::unique_ptr<Memory> memory = make(nullptr);
    std::optional<BudgetScope> scope(scoped);
    memory->take();
    const std::size_t charged = scoped.in_use();
    if (begins_with(row.scope, "not counted: ")) {
        EXPECT_EQ(charged, 0U);
        return memory->end();
    }
    const bool is_block = row.scope == "its usable bytes";
    EXPECT_EQ(charged, is_block ? memory->usable() : memory->committed()) << row.scope;
    EXPECT_NE(charged, 0U);
    EXPECT_EQ(process.in_use(), charged);
    scope.reset();
    expect_ended(row.until, *memory, scoped);
    EXPECT_EQ(process.in_use(), 0U);
}

void check_refusal(const Row& row, const Make& make) {
    if (begins_with(row.scope, "not counted: ")) return;
    Budget scoped("scope", {.hard = 100});
    const std::unique_ptr<Memory> memory = make(nullptr);
    const BudgetScope scope(scoped);
    const bool is_planned = row.refused == "the pool serves it";
    // The block of the pool is charged and refused in turn.
    EXPECT_EQ(error_of(*memory), is_planned ? "`AllocationError`" : row.refused);
    EXPECT_EQ(scoped.in_use(), 0U);
}

TEST(BudgetWays, AreThoseOfTheGuide) {
    const std::map<std::string, Row> rows = table_of_guide();
    for (const auto& [name, make] : ways()) {
        const auto row = rows.find(name);
        ASSERT_NE(row, rows.end()) << "the guide has no row '" << name << "'";
        SCOPED_TRACE(name);
        for (void (*check)(const Row&, const Make&) : {check_own, check_scope, check_refusal}) {
            // A thread of its own has a scratch of its own.
            std::thread([&, &way = make] { check(row->second, way); }).join();
        }
    }
    EXPECT_EQ(rows.size(), ways().size() + 1) << "the rest: arrays, tensors, malloc";
}

}  // namespace
}  // namespace tensorpool
