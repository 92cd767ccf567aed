# SPDX-License-Identifier: Apache-2.0
# compile_rtsp OUT FLAG…: the fuzz target OUT of the RTSP sink's parsers. All of them are one program (RTSPTargets.swift), which the first one builds.
compile_rtsp() {
  local out=$1 sink=Sources/Plugins/sinks/RTSPSink
  local program=${out%/*}/rtsp
  shift
  (
    flock 9
    [[ -e $program ]] ||
      swiftc -O -swift-version 6 -use-ld=lld -parse-as-library -I $sink/Shims/CNettle "$@" -module-name FuzzTarget -o "$program" \
        Tests/Fuzz/{RTSPTargets,RTSPWireFuzz,RTSPTunnelFuzz,RTSPDialogueFuzz,RTSPHeadersFuzz,RTCPFuzz,Numbers}.swift $sink/{Protocol,Access,Session,RTP}/*.swift
  ) 9>"$program.lock"
  ln -f "$program" "$out"
}
