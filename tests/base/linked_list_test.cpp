#include "base/registry.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tensorpool::base {
namespace {

struct Element {
    int value = 0;
    Element* next = nullptr;
    Element* previous = nullptr;
};

std::vector<int> values_of(const Element* first) {
    std::vector<int> values;
    for (; first != nullptr; first = first->next) values.push_back(first->value);
    return values;
}

TEST(LinkedList, ElementIsRemovedAnywhere) {
    Element one{1};
    Element two{2};
    Element three{3};
    Element* first = nullptr;
    for (Element* element : {&three, &two, &one}) link_in_front(first, *element);
    EXPECT_EQ(values_of(first), (std::vector{1, 2, 3}));
    unlink(first, two);
    EXPECT_EQ(values_of(first), (std::vector{1, 3}));
    unlink(first, one);
    EXPECT_EQ(values_of(first), (std::vector{3}));
    link_in_front(first, two);
    unlink(first, three);
    EXPECT_EQ(values_of(first), (std::vector{2}));
    unlink(first, two);
    EXPECT_EQ(first, nullptr);
}

TEST(LinkedList, ElementMayJoinAgain) {
    Element one{1};
    Element two{2};
    Element* first = nullptr;
    link_in_front(first, one);
    link_in_front(first, two);
    unlink(first, one);
    link_in_front(first, one);
    EXPECT_EQ(values_of(first), (std::vector{1, 2}));
    unlink(first, one);
    unlink(first, two);
    EXPECT_EQ(first, nullptr);
}

}  // namespace
}  // namespace tensorpool::base
