# Writes OUTPUT, a C++ file whose function FUNCTION returns the bytes of INPUT.
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
file(WRITE ${OUTPUT} "#include \"server/http/assets.h\"

namespace longview::server {

std::string_view ${FUNCTION}() {
  static constexpr char kBytes[] = {${bytes}};
  return {kBytes, sizeof(kBytes)};
}

}  // namespace longview::server
")
