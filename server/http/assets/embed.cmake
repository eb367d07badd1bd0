# Writes OUTPUT, a C++ file whose function FUNCTION returns the bytes of INPUT. Of the files beside
# INPUT, those it names as <!--NAME--> stand in its place.
file(READ ${INPUT} bytes HEX)
get_filename_component(folder ${INPUT} DIRECTORY)
file(GLOB parts ${folder}/*.css ${folder}/*.js)
foreach(part ${parts})
  get_filename_component(name ${part} NAME)
  string(HEX "<!--${name}-->" place)
  file(READ ${part} content HEX)
  string(REPLACE "${place}" "${content}" bytes "${bytes}")
endforeach()
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
file(WRITE ${OUTPUT} "#include \"server/http/assets.h\"

namespace longview::server {

std::string_view ${FUNCTION}() {
  static constexpr char kBytes[] = {${bytes}};
  return {kBytes, sizeof(kBytes)};
}

}  // namespace longview::server
")
