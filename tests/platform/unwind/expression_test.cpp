#include "platform/unwind/frame.hpp"

#include <gtest/gtest.h>

#if defined(__x86_64__) && defined(__linux__)

#include <optional>
#include <vector>

namespace tensorpool::platform::unwind {
namespace {

std::optional<std::uintptr_t> value_of(const std::vector<unsigned char>& expression,
                                       const Registers& registers = {}, std::uintptr_t first = 0) {
    StackMemory memory(reinterpret_cast<std::uintptr_t>(&registers));
    std::uintptr_t result = 0;
    const TableBytes bytes(expression.data(), expression.data() + expression.size());
    if (!evaluate(bytes, registers, first, memory, result)) return std::nullopt;
    return result;
}

TEST(Expression, ItsFirstValueIsGiven) {
    EXPECT_EQ(value_of({}, {}, 7), 7U);
}

// The end of a frame in an entry of a procedure linkage table.
TEST(Expression, FindsTheFrameOfAnEntryOfAProcedureLinkageTable) {
    const std::vector<unsigned char> entry = {0x77, 8,    0x80, 0,    0x3F, 0x1A,
                                              0x3B, 0x2A, 0x33, 0x24, 0x22};
    Registers registers{};
    registers.value[7] = 0x1000;
    registers.value[16] = 0x2005;
    EXPECT_EQ(value_of(entry, registers), 0x1008U);
    registers.value[16] = 0x200B;
    EXPECT_EQ(value_of(entry, registers), 0x1010U);
}

TEST(Expression, ReadsMemory) {
    const std::uintptr_t word = 42;
    Registers registers{};
    registers.value[3] = reinterpret_cast<std::uintptr_t>(&word) - 16;
    EXPECT_EQ(value_of({0x73, 16, 0x06}, registers), 42U);
}

TEST(Expression, FailsAtMemoryThatCannotBeRead) {
    EXPECT_EQ(value_of({0x30, 0x06}), std::nullopt);
    EXPECT_EQ(value_of({0x09, 0xF8, 0x06}), std::nullopt);
}

TEST(Expression, FailsBeyondItsStack) {
    EXPECT_EQ(value_of({0x22}), std::nullopt);
    EXPECT_EQ(value_of({0x13, 0x13}), std::nullopt);
    EXPECT_EQ(value_of(std::vector<unsigned char>(17, 0x31)), std::nullopt);
    EXPECT_EQ(value_of(std::vector<unsigned char>(15, 0x31)), 1U);
}

TEST(Expression, FailsAtOperationsThatItDoesNotHave) {
    EXPECT_EQ(value_of({0x2F, 0xFD, 0xFF}), std::nullopt);  // a jump to itself
    EXPECT_EQ(value_of({0x03}), std::nullopt);
    EXPECT_EQ(value_of({0x8F, 0}), std::nullopt);  // a register that no rule has
}

TEST(Expression, CalculatesWithSigns) {
    EXPECT_EQ(value_of({0x09, 0xFF, 0x31, 0x2A}), 0U);             // -1 >= 1
    EXPECT_EQ(value_of({0x09, 0xFF, 0x23, 0x03}), 2U);             // -1 + 3
    EXPECT_EQ(value_of({0x0A, 0x34, 0x12, 0x38, 0x1E}), 0x91A0U);  // 0x1234 * 8
    EXPECT_EQ(value_of({0x33, 0x35, 0x1C}), UINTPTR_MAX - 1);      // 3 - 5
    EXPECT_EQ(value_of({0x31, 0x08, 64, 0x24}), 0U);               // 1 << 64
}

}  // namespace
}  // namespace tensorpool::platform::unwind

#endif
