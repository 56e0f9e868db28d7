#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "models/instructions.hpp"
#include "models/pool_model.hpp"
#include "support/forced_shards.hpp"

namespace tensorpool::testing {
namespace {

// Shorter under the sanitizers, which are ten times slower.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t programs = 40;
#else
constexpr std::uint64_t programs = 400;
#endif
constexpr std::size_t program_bytes = 600;

/// Returns what the pool did wrong; "" if nothing.
std::string fault_of(std::span<const std::uint8_t> program, std::string_view planted_fault = "") {
    try {
        run_instructions(program, planted_fault);
        return "";
    } catch (const Mismatch& mismatch) {
        return mismatch.what();
    }
}

TEST(PoolModel, HoldsForAnySequenceOfInstructions) {
    for (std::uint64_t seed = 1; seed <= programs; ++seed) {
        EXPECT_EQ(fault_of(random_instructions(seed, program_bytes)), "") << "seed " << seed;
    }
}

TEST(PoolModel, HoldsForLongSequencesOfInstructions) {
    for (std::uint64_t seed = 1; seed <= programs / 100 + 1; ++seed) {
        const auto program = random_instructions(seed << 32, 20 * program_bytes);
        EXPECT_EQ(fault_of(program), "") << "seed " << (seed << 32);
    }
}

TEST(PoolModel, HoldsWithFourShardsBetweenWhichThreadsMove) {
    const ForcedShards forced(4);
    for (std::uint64_t seed = 1; seed <= programs / 4; ++seed) {
        EXPECT_EQ(fault_of(random_instructions(seed, program_bytes)), "") << "seed " << seed;
    }
}

TEST(PoolModel, HoldsForTheFuzzersCorpus) {
    unsigned count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(TENSORPOOL_POOL_CORPUS)) {
        std::ifstream file(entry.path(), std::ios::binary);
        const std::vector<std::uint8_t> program{std::istreambuf_iterator<char>(file), {}};
        EXPECT_EQ(fault_of(program), "") << entry.path();
        ++count;
    }
    EXPECT_GT(count, 0U) << "in " << TENSORPOOL_POOL_CORPUS;
}

// A model that misses an obvious fault would be useless.
class PoolModelWithPlantedFault : public ::testing::TestWithParam<const char*> {};

TEST_P(PoolModelWithPlantedFault, IsDetected) {
    std::string found;
    for (std::uint64_t seed = 1; seed <= 20 && found.empty(); ++seed) {
        const auto program = random_instructions(seed << 40, 4 * program_bytes);
        ASSERT_EQ(fault_of(program), "");
        found = fault_of(program, GetParam());
    }
    EXPECT_NE(found, "");
}

INSTANTIATE_TEST_SUITE_P(Each, PoolModelWithPlantedFault,
                         ::testing::Values("twice", "forget", "dirt", "lose"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace tensorpool::testing
