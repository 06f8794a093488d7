# The interpreter that has the peers: mcap, rosbags.
target_compile_definitions(strobe_sensors_test PRIVATE STROBE_TEST_PYTHON="${STROBE_PYTHON}")
