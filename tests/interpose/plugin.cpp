// Loaded and unloaded by threads.cpp: static and thread-local objects, and exceptions, of a library
// that is loaded late and unloaded early.

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

const std::vector<std::string> names(100, std::string(1000, 'n'));
const std::unique_ptr<char[]> large(new char[300'000]);
thread_local std::vector<char> scratch(70'000, 's');

}  // namespace

extern "C" bool use_plugin(std::size_t bytes) {
    scratch.resize(scratch.size() + bytes);
    large[bytes % 300'000] = 'l';
    try {
        throw std::runtime_error(std::string(bytes, 'e'));
    } catch (const std::runtime_error& error) {
        return std::string(error.what()).size() == bytes && names.size() == 100;
    }
}
