#include "arena/arena_state.hpp"

#include <gtest/gtest.h>

namespace tensorpool::arena {
namespace {

TEST(LivingHandles, FindsTheFirstBlockThatEndsAboveAnOffset) {
    LivingHandles handles;
    EXPECT_FALSE(handles.first_above(0));
    handles.add({64, 128});
    handles.add({1024, 64});
    EXPECT_EQ(handles.first_above(0)->offset, 64U);
    EXPECT_EQ(handles.first_above(64)->bytes, 128U);
    EXPECT_EQ(handles.first_above(128)->offset, 64U) << "the block ends above";
    EXPECT_EQ(handles.first_above(192)->offset, 1024U);
    EXPECT_FALSE(handles.first_above(1088));
    handles.remove(1024);
    handles.remove(5);
    EXPECT_FALSE(handles.first_above(192));
}

}  // namespace
}  // namespace tensorpool::arena
