# SPDX-License-Identifier: Apache-2.0
# compile_rtsp OUT FLAG…: the fuzz target OUT of the RTSP sink's parsers, and of CodedVideo and the pure part of ServerAccess, which are modules of their own. All of them are one program (RTSPTargets.swift), which the
# first one builds. Core is the library that `swift build -c release` leaves behind.
compile_rtsp() {
  local out=$1 sink=Sources/Plugins/sinks/RTSPSink access=Sources/Plugins/support/ServerAccess built=${FUZZ_CORE:-.build/release} work=.build/fuzz/rtsp-modules
  local program=${out%/*}/rtsp
  shift
  (
    flock 9
    [[ ! -e $program ]] || exit 0
    [[ -e $built/libFrameCore.so ]] || swift build -c release
    mkdir -p "$work"
    flags=("$level" -swift-version 6 -use-ld=lld -parse-as-library -I "$work" -I "$built/Modules" -I Sources/Core/StageLink/include -I $access/Shims/CNettle "$@")
    mapfile -t sources < <(find Sources/Plugins/support/CodedVideo -name .build -prune -o -name '*.swift' ! -name Package.swift -print | sort)
    swiftc "${flags[@]}" -wmo -module-name CodedVideo -emit-module -emit-module-path "$work/CodedVideo.swiftmodule" -emit-object -o "$work/CodedVideo.o" "${sources[@]}"
    swiftc "${flags[@]}" -wmo -module-name ServerAccess -emit-module -emit-module-path "$work/ServerAccess.swiftmodule" -emit-object -o "$work/ServerAccess.o" \
      $access/{ASCII,Authorization,Base64,Base64Stream,Credentials,IPAddress,MessageDigest,Secrets,UserLines}.swift
    swiftc "${flags[@]}" -module-name FuzzTarget -o "$program" \
      Tests/Fuzz/{RTSPTargets,RTSPWireFuzz,RTSPTunnelFuzz,RTSPDialogueFuzz,RTSPHeadersFuzz,RTCPFuzz,Numbers}.swift $sink/{Protocol,Access,Session,RTP}/*.swift "$work/CodedVideo.o" "$work/ServerAccess.o" \
      -L "$built" -lFrameCore -Xlinker "-rpath=$PWD/$built"
  ) 9>"$program.lock"
  ln -f "$program" "$out"
}
