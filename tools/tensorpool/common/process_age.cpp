#include "common/process_age.hpp"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace tensorpool::command {

double process_age(std::uint64_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    // The second field is the name in parentheses, which may hold anything; the 22nd the start.
    const std::size_t end_of_name = text.rfind(')');
    double seconds_up = 0;
    std::ifstream("/proc/uptime") >> seconds_up;
    if (end_of_name == std::string::npos) return 0;
    std::istringstream fields(text.substr(end_of_name + 1));
    std::string skipped;
    for (int field = 3; field < 22; ++field) fields >> skipped;
    double ticks = 0;
    const double ticks_a_second = static_cast<double>(sysconf(_SC_CLK_TCK));
    if (!(fields >> ticks) || ticks_a_second <= 0) return 0;
    const double age = seconds_up - ticks / ticks_a_second;
    return age > 0 ? age : 0;
}

}  // namespace tensorpool::command
