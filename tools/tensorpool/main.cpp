#include "command.hpp"
#include "replay/contender.hpp"

int main(int count, char** words) {
    // First of all: what asks for memory here would ask the allocator that is to be measured.
    if (tensorpool::command::replay::is_contender(count, words)) {
        return tensorpool::command::replay::contend(count, words);
    }
    return tensorpool::command::run_command(count, words);
}
