/// @file
/// A program to be run: executes its arguments as orders, one after the other.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include <tensorpool/tensorpool.hpp>

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

void say(const std::string& text) {
    std::cout << text << std::endl;
}

extern "C" void tell_signal(int signal) {
    char text[] = "signal   \n";
    text[7] = static_cast<char>('0' + signal / 10);
    text[8] = static_cast<char>('0' + signal % 10);
    [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, text, sizeof text - 1);
}

/// Forks: the child executes the remaining orders; the parent waits for it and then does so too.
void fork_here() {
    const pid_t child = ::fork();
    if (child > 0) ::waitpid(child, nullptr, 0);
}

void hold(std::size_t bytes) {
    try {
        std::memset(tensorpool::get_global_memory_pool().allocate(bytes), 1, bytes);
    } catch (const std::bad_alloc&) {
        say("refused");
    }
}

void use(std::size_t times) {
    tensorpool::MemoryPool& pool = tensorpool::get_global_memory_pool();
    for (std::size_t i = 0; i < times; ++i) pool.deallocate(pool.allocate(100'000), 100'000);
}

void read_line() {
    std::string line;
    std::getline(std::cin, line);
}

}  // namespace

int main(int count, char** arguments) {
    for (int i = 1; i < count; ++i) {
        const std::string order = arguments[i];
        const auto number = [&] { return std::strtoul(arguments[++i], nullptr, 10); };
        if (order == "hold") hold(number() * mib);
        if (order == "use") use(number());
        if (order == "fork") fork_here();
        if (order == "say") say(arguments[++i]);
        if (order == "read") read_line();
        if (order == "tell") std::signal(static_cast<int>(number()), tell_signal);
        if (order == "ignore") std::signal(static_cast<int>(number()), SIG_IGN);
        if (order == "group") say(std::to_string(::getpgrp()));
        if (order == "raise") std::raise(static_cast<int>(number()));
        if (order == "exec") ::execv(arguments[0], arguments + i);
        if (order == "exit") ::_exit(static_cast<int>(number()));
    }
}
