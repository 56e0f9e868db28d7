#include "formats/symbols/frame_names.hpp"

#include <gtest/gtest.h>

namespace tensorpool::command::symbols {
namespace {

TEST(ShortName, OmitsParametersAndTemplateArguments) {
    EXPECT_EQ(short_name("main"), "main");
    EXPECT_EQ(short_name("forward(int, std::vector<int, std::allocator<int> >&)"), "forward");
    EXPECT_EQ(short_name("std::vector<std::pair<int, int> >::push_back(int&&)"),
              "std::vector<>::push_back");
    EXPECT_EQ(short_name("f(void (*)(int)) const"), "f const");
    EXPECT_EQ(short_name(""), "");
}

TEST(ShortName, KeepsOperatorsAndAnonymousNamespaces) {
    EXPECT_EQ(short_name("a::(anonymous namespace)::f(int)"), "a::(anonymous namespace)::f");
    EXPECT_EQ(short_name("A<int>::operator()(int) const"), "A<>::operator() const");
    EXPECT_EQ(short_name("operator<< <char>(int)"), "operator<< <>");
    EXPECT_EQ(short_name("operator->*(int)"), "operator->*");
    EXPECT_EQ(short_name("operator new(unsigned long)"), "operator new");
    EXPECT_EQ(short_name("main::{lambda(int)#1}::operator()(int) const"),
              "main::{lambda#1}::operator() const");
}

TEST(ShortName, AcceptsUnbalancedBrackets) {
    EXPECT_EQ(short_name("a>b)c"), "a>b)c");
    EXPECT_EQ(short_name("a<b(c"), "a<>");
}

}  // namespace
}  // namespace tensorpool::command::symbols
