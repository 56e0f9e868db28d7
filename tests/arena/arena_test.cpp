#include <tensorpool/arena.hpp>

#include <gtest/gtest.h>

#include <array>
#include <new>
#include <set>
#include <span>
#include <vector>

#include "arena/arena_test.hpp"
#include "base/alignment.hpp"
#include "pages/random.hpp"
#include "platform/platform.hpp"

namespace tensorpool {
namespace {

using base::align_up;
using base::is_aligned;
using testing::ArenaUsage;
using testing::bare_options;
using testing::gib;
using testing::holds;
using testing::kib;
using testing::message_of;
using testing::mib;
using testing::write_pattern;

/// The kinds of arenas with memory: shared or for one thread, with checks or without.
struct Variant {
    const char* name;
    bool over;
    Sharing sharing;
    Checks checks;
};

class ArenaOfEachKind : public ::testing::TestWithParam<Variant> {
protected:
    ArenaOptions options() const {
        ArenaOptions options = bare_options();
        options.sharing = GetParam().sharing;
        options.checks = GetParam().checks;
        options.max_capacity = memory_.size();
        return options;
    }
    Arena make(const ArenaOptions& options) {
        return GetParam().over ? Arena::over(memory_, options) : Arena(options);
    }
    Arena make() { return make(options()); }

private:
    std::vector<std::byte> storage_ = std::vector<std::byte>(32 * mib + 4 * kib);
    std::span<std::byte> memory_ = {
        storage_.data() + (align_up(reinterpret_cast<std::uintptr_t>(storage_.data()), 4 * kib) -
                           reinterpret_cast<std::uintptr_t>(storage_.data())),
        32 * mib};
};

INSTANTIATE_TEST_SUITE_P(
    Kinds, ArenaOfEachKind,
    ::testing::Values(Variant{"Own", false, Sharing::any_thread, Checks::off},
                      Variant{"OwnOneThread", false, Sharing::one_thread, Checks::off},
                      Variant{"OwnOneThreadChecked", false, Sharing::one_thread, Checks::full},
                      Variant{"Over", true, Sharing::any_thread, Checks::basic},
                      Variant{"OverOneThread", true, Sharing::one_thread, Checks::off}),
    [](const auto& param) { return std::string(param.param.name); });

TEST_P(ArenaOfEachKind, BlocksAreDistinctAlignedAndKeepTheirContent) {
    Arena arena = make();
    testing::Random random(1);
    struct Block {
        void* at;
        std::size_t bytes;
    };
    std::vector<Block> blocks;
    std::size_t rounded = 0;
    while (rounded < 12 * mib) {
        const std::size_t bytes = random.log_uniform(1, 256 * kib);
        const std::size_t alignment = std::size_t{1} << random.below(13);
        void* const block = random.one_in(2) ? arena.allocate(bytes, alignment)
                                             : arena.try_allocate(bytes, alignment);
        ASSERT_NE(block, nullptr);
        ASSERT_TRUE(is_aligned(block, alignment) && is_aligned(block, 64)) << alignment;
        write_pattern(block, bytes, blocks.size());
        blocks.push_back({block, bytes});
        rounded += align_up(bytes, 64);
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        ASSERT_TRUE(holds(blocks[i].at, blocks[i].bytes, i));
    }
    EXPECT_GE(arena.used(), rounded) << "padding is added";
    EXPECT_EQ(arena.peak(), arena.used());
}

TEST_P(ArenaOfEachKind, BlocksAreAdjacentInMultiplesOfTheAlignment) {
    for (const std::size_t alignment :
         {1 * kib / 1024, std::size_t{16}, std::size_t{64}, 4 * kib}) {
        ArenaOptions wanted = options();
        wanted.alignment = alignment;
        Arena arena = make(wanted);
        EXPECT_EQ(arena.alignment(), alignment);
        auto* const first = static_cast<std::byte*>(arena.allocate(100, 1));
        EXPECT_EQ(arena.used(), align_up(100, alignment));
        EXPECT_EQ(arena.allocate(1, 1), first + align_up(100, alignment));
        EXPECT_TRUE(is_aligned(arena.allocate(1), 64)) << "the default of allocate";
    }
}

TEST_P(ArenaOfEachKind, ZeroBytesReturnNull) {
    Arena arena = make();
    const ArenaUsage before(arena);
    EXPECT_EQ(arena.allocate(0), nullptr);
    EXPECT_EQ(arena.try_allocate(0), nullptr);
    EXPECT_EQ(arena.allocate(0, 4096), nullptr);
    EXPECT_EQ(ArenaUsage(arena), before);
    EXPECT_EQ(arena.statistics().refusals, 0U);
}

TEST_P(ArenaOfEachKind, AlignmentMustBeAPowerOfTwo) {
    Arena arena = make();
    arena.allocate(1);
    const ArenaUsage before(arena);
    for (const std::size_t alignment : {std::size_t{0}, std::size_t{3}, std::size_t{48},
                                        std::size_t{65}, SIZE_MAX, SIZE_MAX / 2}) {
        EXPECT_EQ(message_of<std::invalid_argument>([&] { arena.allocate(10, alignment); }),
                  "tensorpool: arena 'mine': allocate: alignment is " + std::to_string(alignment) +
                      " B; expected a power of two");
        EXPECT_THROW(arena.allocate(0, alignment), std::invalid_argument);
        EXPECT_EQ(arena.try_allocate(10, alignment), nullptr);
    }
    EXPECT_EQ(ArenaUsage(arena), before);
}

TEST_P(ArenaOfEachKind, SizeOrAlignmentThatOverflowsIsRefused) {
    ArenaOptions wanted = options();
    wanted.max_allocation = SIZE_MAX;
    Arena arena = make(wanted);
    arena.allocate(1);
    const ArenaUsage before(arena);
    for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - 62, SIZE_MAX - 63, SIZE_MAX / 2 + 1,
                                    std::size_t{1} << 48, (std::size_t{1} << 47) + 1, gib + 1}) {
        EXPECT_THROW(arena.allocate(bytes), AllocationError) << bytes;
        EXPECT_THROW(arena.allocate(bytes, 4096), AllocationError) << bytes;
        EXPECT_EQ(arena.try_allocate(bytes), nullptr) << bytes;
    }
    for (unsigned bit = 40; bit < 64; ++bit) {
        EXPECT_THROW(arena.allocate(1, std::size_t{1} << bit), AllocationError) << bit;
        EXPECT_EQ(arena.try_allocate(1, std::size_t{1} << bit), nullptr) << bit;
    }
    EXPECT_EQ(ArenaUsage(arena), before);
    EXPECT_NE(arena.allocate(1), nullptr);
}

TEST_P(ArenaOfEachKind, RequestAboveMaxAllocationIsRefused) {
    ArenaOptions wanted = options();
    wanted.max_allocation = 1000;
    Arena arena = make(wanted);
    EXPECT_NE(arena.allocate(1000), nullptr);
    const ArenaUsage before(arena);
    const std::string one_page = std::to_string(platform::page_bytes() / 1024) + " KiB";
    EXPECT_EQ(message_of<AllocationError>([&] { arena.allocate(1001); }),
              "tensorpool: mine: allocate: 1001 B (1001 B) requested with 1 KiB in use and " +
                  std::string(GetParam().over ? "32 MiB" : one_page) +
                  " committed; limit met: max_allocation (1000 B)\n"
                  "  it would fit if max_allocation were at least 1001 B (1001 B)");
    EXPECT_EQ(arena.try_allocate(1001), nullptr);
    EXPECT_EQ(ArenaUsage(arena), before);
    EXPECT_EQ(arena.statistics().refusals, 2U);
}

/// Returns an alignment of which no multiple lies from `begin` to `end` bytes behind `base`.
std::size_t alignment_without_multiple(const void* base, std::size_t begin, std::size_t end) {
    const auto address = reinterpret_cast<std::uintptr_t>(base);
    std::size_t alignment = 2 * (end - begin);
    while ((address + begin + alignment - 1) / alignment * alignment < address + end) {
        alignment *= 2;
    }
    return alignment;
}

TEST_P(ArenaOfEachKind, FullArenaRefusesAndStaysUsable) {
    Arena arena = make();
    void* const first = arena.allocate(31 * mib);
    write_pattern(first, 31 * mib, 5);
    const ArenaUsage before(arena);
    EXPECT_THROW(arena.allocate(2 * mib), std::bad_alloc);
    EXPECT_THROW(arena.allocate(mib + 1), std::bad_alloc);
    EXPECT_THROW(arena.allocate(1, alignment_without_multiple(first, 31 * mib, 32 * mib)),
                 std::bad_alloc);
    EXPECT_EQ(arena.try_allocate(2 * mib), nullptr);
    EXPECT_EQ(ArenaUsage(arena), before);
    void* const rest = arena.allocate(mib);
    write_pattern(rest, mib, 6);
    EXPECT_EQ(arena.available(), 0U);
    EXPECT_THROW(arena.allocate(1), std::bad_alloc);
    EXPECT_EQ(arena.try_allocate(1), nullptr);
    EXPECT_TRUE(holds(first, 31 * mib, 5) && holds(rest, mib, 6));
    arena.reset();
    EXPECT_EQ(arena.allocate(32 * mib), first);
}

TEST(Arena, StartsWithItsOptions) {
    const Arena arena;
    EXPECT_EQ(arena.name(), "arena");
    EXPECT_EQ(arena.capacity(), 8 * mib);
    EXPECT_EQ(arena.available(), 8 * mib);
    EXPECT_EQ(arena.alignment(), 64U);
    EXPECT_EQ(arena.used(), 0U);
    EXPECT_EQ(arena.peak(), 0U);
    EXPECT_GE(arena.reserved(), arena.capacity());
    EXPECT_EQ(Arena(ArenaOptions{.initial_capacity = 100 * mib, .max_capacity = mib}).capacity(),
              mib)
        << "at most max_capacity";
}

TEST(Arena, KeepsTheFirst47BytesOfItsName) {
    const Arena arena(ArenaOptions{.name = std::string(60, 'x'), .initial_capacity = 0});
    EXPECT_EQ(arena.name(), std::string(47, 'x'));
    EXPECT_EQ(arena.statistics().name, std::string(47, 'x'));
}

TEST(Arena, BeginsAtAMultipleOfEvenALargeAlignment) {
    for (const std::size_t alignment : {64 * kib, 2 * mib, 64 * mib, 4 * gib}) {
        ArenaOptions options = bare_options();
        options.alignment = alignment;
        options.max_capacity = 2 * alignment;
        Arena arena(options);
        void* const block = arena.try_allocate(1);
        // As much may not be available.
        EXPECT_TRUE(block != nullptr || alignment > 64 * mib);
        EXPECT_TRUE(is_aligned(block, alignment));
        EXPECT_TRUE(is_aligned(arena.used(), alignment));
    }
}

TEST(Arena, AlignmentBeyondAllMemoryRefusesEveryRequest) {
    ArenaOptions options = bare_options();
    options.alignment = std::size_t{1} << 62;
    Arena arena = Arena::measuring(options);
    for (int i = 0; i < 3; ++i) {
        EXPECT_THROW(arena.allocate(1), AllocationError);
        EXPECT_EQ(arena.try_allocate(1), nullptr);
        EXPECT_EQ(arena.used(), 0U);
    }
    EXPECT_THROW(Arena{options}, AllocationError);
}

TEST(ArenaOverABuffer, StartsAtTheFirstMultipleOfTheAlignment) {
    alignas(64) std::array<std::byte, 1024> buffer = {};
    for (std::size_t skew = 0; skew < 130; ++skew) {
        Arena arena = Arena::over(std::span(buffer).subspan(skew));
        const std::size_t whole = 1024 - align_up(skew, 64);
        EXPECT_EQ(arena.reserved(), whole);
        EXPECT_EQ(arena.capacity(), whole);
        EXPECT_EQ(arena.available(), whole);
        EXPECT_EQ(arena.allocate(whole), buffer.data() + align_up(skew, 64));
        EXPECT_EQ(arena.try_allocate(1), nullptr);
    }
}

TEST(ArenaOverABuffer, NeverServesABytePastIt) {
    alignas(64) std::array<std::byte, 1024> buffer = {};
    Arena arena = Arena::over(std::span(buffer).first(1000));
    EXPECT_NE(arena.allocate(900), nullptr);
    EXPECT_EQ(arena.available(), 1000U - 960) << "the last 40 bytes hold no block";
    EXPECT_EQ(arena.try_allocate(1), nullptr);
    EXPECT_EQ(arena.used(), 960U);
}

TEST(ArenaOverABuffer, WithoutRoomRefusesEverything) {
    alignas(64) std::array<std::byte, 64> buffer = {};
    for (const std::span<std::byte> none :
         {std::span<std::byte>(), std::span(buffer).first(0), std::span(buffer).subspan(1, 40)}) {
        Arena arena = Arena::over(none);
        EXPECT_EQ(arena.name(), "buffer");
        EXPECT_EQ(arena.available(), 0U);
        EXPECT_EQ(arena.allocate(0), nullptr);
        EXPECT_THROW(arena.allocate(1), std::bad_alloc);
        EXPECT_EQ(arena.try_allocate(1), nullptr);
        EXPECT_THROW(arena.reserve(1), std::bad_alloc);
        arena.reserve(0);
        EXPECT_EQ(arena.trim(), 0U);
        arena.reset();
    }
}

TEST(ArenaOverABuffer, NamesTheBufferAsTheLimit) {
    alignas(64) std::array<std::byte, 128> buffer = {};
    Arena arena = Arena::over(buffer);
    EXPECT_EQ(message_of<AllocationError>([&] { arena.allocate(129); }),
              "tensorpool: buffer: allocate: 129 B (129 B) requested with 0 B in use and 128 B "
              "committed; limit met: the buffer (128 B)\n"
              "  it would fit if the buffer were at least 192 B (192 B)");
}

}  // namespace
}  // namespace tensorpool
