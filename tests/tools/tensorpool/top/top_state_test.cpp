#include "top/top_state.hpp"

#include <gtest/gtest.h>

namespace tensorpool::command {
namespace {

Table rows(const std::vector<std::string>& keys) {
    Table table;
    table.columns = {{"A"}, {"B"}, {"C"}};
    for (const std::string& key : keys) {
        table.rows.push_back({{key}, {key}, {key}});
        table.keys.push_back(key);
    }
    return table;
}

class TopKeys : public ::testing::Test {
protected:
    TopState state_;
    Table table_ = rows({"4711", "12", "13"});
    std::vector<std::uint64_t> pools_ = {7, 9};

    Action press_key(Key key) { return press(state_, {key}, table_, pools_); }
    Action type(char character) {
        return press(state_, {Key::character, character}, table_, pools_);
    }
};

TEST_F(TopKeys, TheCursorStaysOnTheTable) {
    press_key(Key::up);
    EXPECT_EQ(state_.position().cursor, 0u);
    for (int i = 0; i < 9; ++i) press_key(Key::down);
    EXPECT_EQ(state_.position().cursor, 2u);
    press_key(Key::first);
    EXPECT_EQ(state_.position().cursor, 0u);
    press_key(Key::last);
    EXPECT_EQ(state_.position().cursor, 2u);
}

TEST_F(TopKeys, AShrinkingTableMovesTheCursor) {
    press_key(Key::last);
    table_ = rows({"1"});
    press_key(Key::up);
    EXPECT_EQ(state_.position().cursor, 0u);
    table_ = rows({});
    press_key(Key::down);
    EXPECT_EQ(state_.position().cursor, 0u);
    EXPECT_EQ(press_key(Key::enter), Action::nothing);
}

TEST_F(TopKeys, EnterOpensTheProcessAtTheCursor) {
    press_key(Key::down);
    EXPECT_EQ(press_key(Key::enter), Action::choose_process);
    EXPECT_EQ(state_.process, 12u);
    EXPECT_EQ(state_.view, View::pools);
}

TEST_F(TopKeys, EnterOnAPoolShowsItsBuckets) {
    type('p');
    table_ = rows({"7", "9"});
    press_key(Key::down);
    press_key(Key::enter);
    EXPECT_EQ(state_.view, View::buckets);
    EXPECT_EQ(state_.pool, 9u);
}

TEST_F(TopKeys, EnterShowsARecordAndEscapeTheList) {
    type('d');
    table_ = rows({"5", "6"});
    press_key(Key::down);
    EXPECT_EQ(press_key(Key::enter), Action::update);
    EXPECT_EQ(state_.view, View::devices);
    EXPECT_EQ(state_.record, 6u);
    EXPECT_EQ(press_key(Key::enter), Action::nothing) << "there is no further level";
    press_key(Key::escape);
    EXPECT_EQ(state_.view, View::devices);
    EXPECT_EQ(state_.record, 0u);
    press_key(Key::enter);
    type('d');
    EXPECT_EQ(state_.record, 0u);
    type('g');
    press_key(Key::enter);
    EXPECT_EQ(state_.record, 5u);
    press_key(Key::escape);
    EXPECT_EQ(state_.view, View::budgets);
    press_key(Key::escape);
    EXPECT_EQ(state_.view, View::processes);
}

TEST_F(TopKeys, LeftAndRightCycleThroughThePools) {
    std::vector<std::uint64_t> seen;
    for (int i = 0; i < 4; ++i) {
        seen.push_back(state_.pool);
        press_key(Key::right);
    }
    EXPECT_EQ(seen, (std::vector<std::uint64_t>{0, 7, 9, 0}));
    press_key(Key::left);
    press_key(Key::left);
    EXPECT_EQ(state_.pool, 9u);
}

TEST_F(TopKeys, KeysCycleThroughTheSortColumns) {
    state_.view = View::events;
    type('>');
    EXPECT_EQ(state_.position().column, 1u);
    type('<');
    type('<');
    EXPECT_EQ(state_.position().column, 2u);
    type('i');
    EXPECT_TRUE(state_.position().inverted);
}

TEST_F(TopKeys, EachViewHasALetterAndAPositionInTheCycle) {
    const std::string letters = "opbcstaldgnke";
    for (std::size_t i = 0; i < letters.size(); ++i) {
        EXPECT_EQ(type(letters[i]), Action::update);
        EXPECT_EQ(static_cast<std::size_t>(state_.view), i);
    }
    press_key(Key::tab);
    EXPECT_EQ(state_.view, View::processes);
    press_key(Key::back_tab);
    EXPECT_EQ(state_.view, View::events);
    press_key(Key::escape);
    EXPECT_EQ(state_.view, View::processes);
}

TEST_F(TopKeys, HelpEndsWithAnyKey) {
    type('?');
    EXPECT_TRUE(state_.help);
    type('p');
    EXPECT_FALSE(state_.help);
    EXPECT_EQ(state_.view, View::processes);
    type('h');
    EXPECT_EQ(type('q'), Action::quit);
}

TEST_F(TopKeys, ReturnsActionsForTheCaller) {
    EXPECT_EQ(type('q'), Action::quit);
    EXPECT_EQ(type('r'), Action::reset_highest);
    EXPECT_EQ(type('u'), Action::nothing);
    EXPECT_TRUE(state_.plain_bytes);
    EXPECT_EQ(type('~'), Action::nothing);
}

}  // namespace
}  // namespace tensorpool::command
