#include <gtest/gtest.h>

#include "replay/contender.hpp"

int main(int count, char** words) {
    if (tensorpool::command::replay::is_contender(count, words)) {
        return tensorpool::command::replay::contend(count, words);
    }
    testing::InitGoogleTest(&count, words);
    return RUN_ALL_TESTS();
}
