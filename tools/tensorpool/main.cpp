#include "command.hpp"

int main(int count, char** words) {
    return tensorpool::command::run_command(count, words);
}
