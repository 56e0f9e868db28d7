/// Uses the component `models` alone. Ends with 0 when all is as it should be.

#include <tensorpool/model_file.hpp>

int main() {
    try {
        tensorpool::ModelFile::read({}, "nothing");
    } catch (const tensorpool::ModelFileError&) {
        return 0;
    }
    return 1;
}
