target_compile_definitions(strobe_importers_test PRIVATE STROBE_IMPORTERS_TESTS="${CMAKE_CURRENT_SOURCE_DIR}/importers")
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND AND TARGET strobe)
  add_test(NAME cli.import_test COMMAND ${Python3_EXECUTABLE} -m unittest -v import_cli_test
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/importers)
  set_tests_properties(cli.import_test PROPERTIES TIMEOUT 300
    ENVIRONMENT "STROBE=$<TARGET_FILE:strobe>;STROBE_SHARED_DATA=${STROBE_SHARED_DATA};PYTHONPATH=${CMAKE_CURRENT_SOURCE_DIR}/cli;PYTHONDONTWRITEBYTECODE=1")
endif()
