#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

#include "formats/profile/formats.hpp"
#include "tools/profile/made_profile.hpp"

namespace tensorpool::command::profile {
namespace {

using testing::MadeProfile;
using Numbers = std::vector<std::uint64_t>;

std::uint64_t take_varint(std::string_view& bytes) {
    std::uint64_t number = 0;
    for (unsigned shift = 0;; shift += 7) {
        if (bytes.empty() || shift > 63) throw std::runtime_error("damaged varint");
        const auto byte = static_cast<unsigned char>(bytes.front());
        bytes.remove_prefix(1);
        number |= std::uint64_t{byte & 0x7fU} << shift;
        if (byte < 0x80) return number;
    }
}

/// A decoded message: the values of each field.
struct Decoded {
    std::map<std::uint64_t, Numbers> numbers;
    std::map<std::uint64_t, std::vector<std::string_view>> texts;

    explicit Decoded(std::string_view bytes) {
        while (!bytes.empty()) {
            const std::uint64_t key = take_varint(bytes);
            const std::uint64_t value = take_varint(bytes);
            if (key % 8 == 0) {
                numbers[key / 8].push_back(value);
            } else if (key % 8 == 2 && value <= bytes.size()) {
                texts[key / 8].push_back(bytes.substr(0, value));
                bytes.remove_prefix(value);
            } else {
                throw std::runtime_error("damaged field");
            }
        }
    }
    std::uint64_t number(std::uint64_t field) const {
        const auto found = numbers.find(field);
        return found == numbers.end() ? 0 : found->second.front();
    }
    Decoded message(std::uint64_t field, std::size_t index) const {
        return Decoded(texts.at(field).at(index));
    }
    Numbers packed(std::uint64_t field) const {
        Numbers values;
        for (std::string_view bytes = texts.at(field).at(0); !bytes.empty();) {
            values.push_back(take_varint(bytes));
        }
        return values;
    }
};

/// The names of a sample's calls, as "function file line", innermost first.
std::vector<std::string> calls_of(const Decoded& profile, const Decoded& sample) {
    std::vector<std::string> calls;
    for (const std::uint64_t id : sample.packed(1)) {
        const Decoded location = profile.message(4, id - 1);
        EXPECT_EQ(location.number(1), id);
        const Decoded line = location.message(4, 0);
        const Decoded function = profile.message(5, line.number(1) - 1);
        EXPECT_EQ(function.number(1), line.number(1));
        calls.push_back(std::string(profile.texts.at(6).at(function.number(2))) + ' ' +
                        std::string(profile.texts.at(6).at(function.number(4))) + ' ' +
                        std::to_string(line.number(2)));
    }
    return calls;
}

std::string text_at(const Decoded& profile, std::uint64_t index) {
    return std::string(profile.texts.at(6).at(index));
}

TEST(ProtocolBuffer, EncodesVarints) {
    ProtocolBuffer message;
    message.add(1, 150);
    message.add(2, 0);
    message.add(3, "ab");
    EXPECT_EQ(message.bytes(),
              "\x08\x96\x01\x1a\x02"
              "ab");
    ProtocolBuffer largest;
    largest.add(15, ~std::uint64_t{0});
    EXPECT_EQ(Decoded(largest.bytes()).number(15), ~std::uint64_t{0});
}

TEST(Pprof, HasTheValuesOfEachSample) {
    const std::string bytes = to_pprof(name_frames(testing::two_sites(), Value::live));
    const Decoded profile(bytes);
    std::vector<std::string> types;
    for (std::size_t i = 0; i < profile.texts.at(1).size(); ++i) {
        const Decoded type = profile.message(1, i);
        types.push_back(text_at(profile, type.number(1)) + ' ' + text_at(profile, type.number(2)));
    }
    EXPECT_EQ(types, (std::vector<std::string>{"alloc_objects count", "alloc_space bytes",
                                               "peak_objects count", "peak_space bytes",
                                               "inuse_objects count", "inuse_space bytes"}));
    ASSERT_EQ(profile.texts.at(2).size(), 2U);
    EXPECT_EQ(profile.message(2, 0).packed(2), (Numbers{240, 24000, 120, 12000, 60, 6000}));
    EXPECT_EQ(profile.message(2, 1).packed(2), (Numbers{80, 8000, 40, 4000, 20, 2000}));
    EXPECT_EQ(text_at(profile, 0), "");
    EXPECT_EQ(text_at(profile, profile.number(14)), "inuse_space");
    EXPECT_EQ(profile.number(9), 1'700'000'000'000'000'000U);
    EXPECT_EQ(profile.number(12), 512U << 10);
    EXPECT_EQ(text_at(profile, profile.message(11, 0).number(1)), "space");
}

TEST(Pprof, HasTheCallsOfEachSample) {
    const std::string bytes = to_pprof(name_frames(testing::two_sites(), Value::live));
    const Decoded profile(bytes);
    EXPECT_EQ(
        calls_of(profile, profile.message(2, 0)),
        (std::vector<std::string>{"lib.so+0x10 /nowhere/lib.so 0", "load /home/me/train.py 12",
                                  "<module> /home/me/train.py 3"}));
    EXPECT_EQ(profile.texts.at(4).size(), 4U);  // the outermost call is shared
}

TEST(Pprof, ShowsTheChosenValueFirst) {
    const std::string bytes = to_pprof(name_frames(testing::two_sites(), Value::peak));
    const Decoded profile(bytes);
    EXPECT_EQ(text_at(profile, profile.number(14)), "peak_space");
}

TEST(Pprof, AcceptsAnyBytesAndAnyNumbers) {
    MadeProfile made;
    ProfileSite& site = made.site({made.frame("python:\xff\xfe@\x80", ~std::uint64_t{0})}, 1);
    site.live_bytes = ~std::uint64_t{0};
    made.site({}, 100);
    const std::string bytes = to_pprof(name_frames(made.profile(), Value::live));
    const Decoded profile(bytes);
    EXPECT_EQ(profile.message(2, 0).packed(2).back(), ~std::uint64_t{0} >> 1);
    EXPECT_EQ(calls_of(profile, profile.message(2, 1)),
              std::vector<std::string>{"[other stacks]  0"});
    EXPECT_EQ(calls_of(profile, profile.message(2, 0)),
              std::vector<std::string>{"\xEF\xBF\xBD\xEF\xBF\xBD \xEF\xBF\xBD 2147483647"});
}

}  // namespace
}  // namespace tensorpool::command::profile
