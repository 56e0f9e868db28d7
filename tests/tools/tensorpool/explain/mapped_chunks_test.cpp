#include "explain/explanation.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <map>

namespace tensorpool::command::explain {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr std::uint64_t begin = std::uint64_t{1} << 40;

Mapping mapping(std::uint64_t bytes, std::uint64_t resident_bytes) {
    return {
        .begin = begin, .end = begin + bytes, .access = "rw-p", .resident_bytes = resident_bytes};
}

/// Returns memory that holds these words, and zeros.
ReadWord words(std::map<std::uint64_t, std::uint64_t> known) {
    return [known = std::move(known)](std::uint64_t address) {
        const auto at = known.find(address);
        return at == known.end() ? 0 : at->second;
    };
}

TEST(MappedChunks, LargeBlocksOfMallocBeginWithTheirSize) {
    const ReadWord two = words({{begin + 8, mib | 2}, {begin + mib + 8, (2 * mib) | 2}});
    EXPECT_EQ(chunks_in(mapping(3 * mib, 3 * mib), false, two).malloc_bytes, 3 * mib);
    EXPECT_EQ(chunks_in(mapping(4 * mib, 2 * mib), false, two).malloc_bytes, 3 * mib / 2);
    EXPECT_EQ(chunks_in(mapping(3 * mib, 3 * mib), false, two).python_bytes, 0u);
}

TEST(MappedChunks, OtherWordsAreNoBlocks) {
    const Mapping one = mapping(mib, mib);
    EXPECT_EQ(chunks_in(one, false, words({{begin + 8, mib}})).malloc_bytes, 0u) << "no bit";
    EXPECT_EQ(chunks_in(one, false, words({{begin + 8, 1000 | 2}})).malloc_bytes, 0u) << "no page";
    EXPECT_EQ(chunks_in(one, false, words({{begin + 8, 2}})).malloc_bytes, 0u);
    EXPECT_EQ(chunks_in(one, false, words({{begin + 8, (2 * mib) | 2}})).malloc_bytes, 0u)
        << "larger than the mapping";
    EXPECT_EQ(chunks_in(one, false, {}).malloc_bytes, 0u) << "memory that cannot be read";
}

TEST(MappedChunks, PythonsArenasHaveOneMebibyte) {
    const ReadWord after_an_arena = words({{begin + mib + 8, mib | 2}});
    const MappedChunks chunks = chunks_in(mapping(3 * mib, 3 * mib), true, after_an_arena);
    EXPECT_EQ(chunks.python_bytes, 2 * mib);
    EXPECT_EQ(chunks.malloc_bytes, mib);
    EXPECT_EQ(chunks_in(mapping(mib / 2, mib / 2), true, {}).python_bytes, 0u);
}

TEST(MappedChunks, PythonIsKnownByItsFiles) {
    EXPECT_TRUE(runs_python({{.path = "/usr/bin/python3.11"}}));
    EXPECT_TRUE(runs_python({{}, {.path = "/usr/lib/libpython3.11.so.1.0"}}));
    EXPECT_FALSE(runs_python({{.path = "/home/python3/train"}, {.path = "[heap]"}}));
}

TEST(MappedChunks, AWordOfThisProcessCanBeRead) {
    const volatile std::uint64_t word = 4711;
    const ReadWord read_word = memory_of(static_cast<std::uint64_t>(getpid()));
    EXPECT_EQ(read_word(reinterpret_cast<std::uintptr_t>(&word)), 4711u);
    EXPECT_EQ(read_word(8), std::nullopt);
    EXPECT_EQ(read_word(reinterpret_cast<std::uintptr_t>(&word)), 4711u) << "after a failure";
}

}  // namespace
}  // namespace tensorpool::command::explain
