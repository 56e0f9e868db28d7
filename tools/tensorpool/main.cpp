#include "command.hpp"
#include "replay/allocator_task.hpp"

int main(int count, char** arguments) {
    // This comes first, because memory allocated here would come from the measured allocator.
    if (tensorpool::command::replay::is_allocator_process(count, arguments)) {
        return tensorpool::command::replay::run_allocator_process(count, arguments);
    }
    return tensorpool::command::run_command(count, arguments);
}
