#include <dlfcn.h>
#include <gtest/gtest.h>

#if defined(__x86_64__) && defined(DLFO_STRUCT_HAS_EH_DBASE)

#include <random>
#include <vector>

#include "platform/unwind/frame.hpp"

namespace tensorpool::platform::unwind {
namespace {

using Bytes = std::vector<unsigned char>;
using Rule = FrameRules::Rule;

// As compilers begin each function: the frame ends at rsp + 8, the return address lies below it.
const Bytes usual = {0x0C, 7, 8, 0x90, 1};
constexpr std::uintptr_t function = 0x1000;

/// The rules of a function, and whether its description is valid.
struct Found {
    FrameRules rules{};
    bool is_valid = false;
};

Found rules_at(std::uintptr_t address, const Bytes& own, const Bytes& common = usual) {
    static Bytes all;
    all = common;
    all.insert(all.end(), own.begin(), own.end());
    Description description;
    const unsigned char* const middle = all.data() + common.size();
    description.group.instructions = {all.data(), middle};
    description.instructions = {middle, all.data() + all.size()};
    description.begin = function;
    description.group.data_unit = -8;
    description.group.return_register = 16;
    Found found;
    found.is_valid = find_rules(description, address, found.rules);
    return found;
}

TEST(FrameRules, ApplyFromTheAddressThatWasReached) {
    const Bytes pushes = {0x41, 0x0E, 16, 0x83, 2, 0x44, 0x0E, 48};
    FrameRules rules = rules_at(function, pushes).rules;
    EXPECT_EQ(rules.frame_register, 7);
    EXPECT_EQ(rules.frame_offset, 8);
    EXPECT_EQ(rules.rules[16], Rule::at_offset);
    EXPECT_EQ(rules.numbers[16], -8);
    EXPECT_EQ(rules.rules[3], Rule::unchanged);
    rules = rules_at(function + 1, pushes).rules;
    EXPECT_EQ(rules.frame_offset, 16);
    EXPECT_EQ(rules.rules[3], Rule::at_offset);
    EXPECT_EQ(rules.numbers[3], -16);
    EXPECT_EQ(rules_at(function + 4, pushes).rules.frame_offset, 16);
    EXPECT_EQ(rules_at(function + 5, pushes).rules.frame_offset, 48);
}

TEST(FrameRules, StatesAreRememberedAndRulesRestored) {
    const Bytes own = {0x86, 3, 0x0E, 24, 0x41, 0x0A, 0xC6, 0x0E, 8, 0x41, 0x0B};
    EXPECT_EQ(rules_at(function + 1, own).rules.rules[6], Rule::unchanged);
    EXPECT_EQ(rules_at(function + 1, own).rules.frame_offset, 8);
    EXPECT_EQ(rules_at(function + 2, own).rules.rules[6], Rule::at_offset);
    EXPECT_EQ(rules_at(function + 2, own).rules.frame_offset, 24);
}

TEST(FrameRules, ExpressionsAreFoundAgain) {
    const Found found = rules_at(function, {0x0F, 2, 0x76, 0x78, 0x10, 6, 2, 0x76, 0, 0x2E, 8});
    ASSERT_TRUE(found.is_valid);
    ASSERT_NE(found.rules.frame_expression, nullptr);
    TableBytes end = found.rules.expression_at(found.rules.frame_expression);
    EXPECT_EQ(end.take<std::uint8_t>(), 0x76);
    EXPECT_EQ(found.rules.rules[6], Rule::at_expression);
    TableBytes expression = found.rules.expression_at(found.rules.base + found.rules.numbers[6]);
    EXPECT_EQ(expression.take<std::uint16_t>(), 0x0076);
    EXPECT_TRUE(expression.is_empty());
}

TEST(FrameRules, RegistersOfVectorsAreLeftOut) {
    EXPECT_TRUE(rules_at(function, {0x91, 2, 0x05, 32, 2, 0x06, 40}).is_valid);
}

TEST(FrameRules, InvalidDescriptionsAreRejected) {
    EXPECT_FALSE(rules_at(function, {0x0B}).is_valid);                // no state
    EXPECT_FALSE(rules_at(function, {0x0A, 0x0A, 0x0A}).is_valid);    // too many
    EXPECT_FALSE(rules_at(function, {0x0D, 17}).is_valid);            // no register
    EXPECT_FALSE(rules_at(function, {0x0E}).is_valid);                // ends early
    EXPECT_FALSE(rules_at(function, {0x10, 6, 100, 0x76}).is_valid);  // ends early
    EXPECT_FALSE(rules_at(function, {0x1C}).is_valid);                // unknown
    EXPECT_FALSE(rules_at(function, {0x83, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F}).is_valid);
}

TEST(FrameRules, AnyBytesEnd) {
    std::mt19937 random(1);
    for (int i = 0; i < 100'000; ++i) {
        Bytes own(random() % 40);
        for (unsigned char& byte : own) byte = static_cast<unsigned char>(random());
        rules_at(function + random() % 64, own);
    }
}

}  // namespace
}  // namespace tensorpool::platform::unwind

#endif
