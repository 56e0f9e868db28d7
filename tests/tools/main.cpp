#include <gtest/gtest.h>

#include "replay/allocator_task.hpp"

int main(int count, char** arguments) {
    if (tensorpool::command::replay::is_allocator_process(count, arguments)) {
        return tensorpool::command::replay::run_allocator_process(count, arguments);
    }
    testing::InitGoogleTest(&count, arguments);
    return RUN_ALL_TESTS();
}
