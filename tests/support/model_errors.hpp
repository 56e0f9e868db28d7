#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include <tensorpool/model_file.hpp>

#include "support/written_file.hpp"

namespace tensorpool::testing {

inline ModelFile read_model(const WrittenFile& file, std::string name = "model") {
    return ModelFile::read(file.view(), std::move(name));
}

/// Reads the file and returns the error that it throws, or nothing.
inline std::optional<ModelFileError> error_of(const WrittenFile& file) {
    try {
        read_model(file);
    } catch (const ModelFileError& error) {
        return error;
    }
    return std::nullopt;
}

/// Expects that the file is rejected because of this field at this offset, with `what` in the text.
inline void expect_refused(const WrittenFile& file, const std::string& field, std::uint64_t offset,
                           const std::string& what) {
    const std::optional<ModelFileError> error = error_of(file);
    ASSERT_TRUE(error) << "was read; expected: " << field << ": " << what;
    const std::string text = error->what();
    EXPECT_EQ(error->field(), field) << text;
    EXPECT_EQ(error->offset(), offset) << text;
    EXPECT_NE(text.find(what), std::string::npos) << text << "\nexpected: " << what;
    const std::string begin =
        "tensorpool: model: " + field + ", at byte " + std::to_string(offset) + ": ";
    EXPECT_EQ(text.substr(0, begin.size()), begin);
}
/// Expects that the file is rejected because of the field that the writer recorded by this name.
inline void expect_refused(const WrittenFile& file, const std::string& field,
                           const std::string& what) {
    expect_refused(file, field, file.field(field).offset, what);
}

}  // namespace tensorpool::testing
