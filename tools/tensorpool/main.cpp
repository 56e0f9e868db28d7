#include "command.hpp"
#include "replay/contender.hpp"

int main(int count, char** arguments) {
    // This comes first: any allocation made here would go to the allocator that is to be measured.
    if (tensorpool::command::replay::is_contender(count, arguments)) {
        return tensorpool::command::replay::contend(count, arguments);
    }
    return tensorpool::command::run_command(count, arguments);
}
