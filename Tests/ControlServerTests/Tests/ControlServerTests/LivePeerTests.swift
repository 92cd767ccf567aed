// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import ControlServer
@testable import FrameCore

/// The WebSocket as an implementation sees it that is not ours: Python's `websockets`.
@Suite struct LivePeerTests {
    private static let python = "/usr/bin/python3"
    private static let isThere = (try? run("import websockets", [])) != nil
    private static let isCI = ProcessInfo.processInfo.environment["CI"] == "true"

    private struct Fault: Error, CustomStringConvertible { var description: String }

    @discardableResult private static func run(_ script: String, _ arguments: [String]) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: python)
        process.arguments = ["-c", script] + arguments
        let (output, faults) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = faults
        try process.run()
        let text = output.fileHandleForReading.readDataToEndOfFile()
        let said = faults.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Fault(description: String(decoding: said, as: UTF8.self)) }
        return String(decoding: text, as: UTF8.self)
    }

    private static let script = """
        import asyncio, json, struct, sys, websockets
        port, token = sys.argv[1], sys.argv[2]

        def connect(**more):
            return websockets.connect(f"ws://127.0.0.1:{port}/api/v1/live", origin=f"http://127.0.0.1:{port}",
                subprotocols=["framehost.v1", "framehost.token." + token.encode().hex()], open_timeout=60, **more)

        async def closes(message):
            async with connect() as socket:
                try:
                    await socket.send(message)
                    while True:
                        await asyncio.wait_for(socket.recv(), 60)
                except websockets.ConnectionClosed as end:
                    return end.rcvd.code

        async def main():
            async with connect() as socket:
                told = {"subprotocol": socket.subprotocol, "extensions": len(socket.extensions)}
                await asyncio.wait_for(await socket.ping(), 60)
                # In parts: the peer sends a frame for each.
                await socket.send(['{"open":5,', '"stage":"cam",', '"width":48}'])
                numbers = []
                while len(numbers) < 3:
                    message = await asyncio.wait_for(socket.recv(), 60)
                    # It says where no picture came within a second.
                    if isinstance(message, str):
                        continue
                    kind, flags, preview, number = struct.unpack(">BBHI", message[:8])
                    numbers.append([kind, flags, preview, number, message[40:].decode()])
                    await socket.send(json.dumps({"shown": preview, "number": number}))
                told["pictures"] = numbers
                await socket.close()
                told["closed"] = socket.close_code
            told["codes"] = [await closes(message) for message in ("x", b"x", '{"open":-1,"stage":"cam"}', "x" * 20_000)]
            print(json.dumps(told, sort_keys=True))

        asyncio.run(main())
        """

    @Test(.enabled(if: isThere || isCI, "python3-websockets is not installed: make test-packages"))
    func anotherImplementationUnderstandsIt() throws {
        let token = "0123456789abcdef"
        let running = try RunningServer { $0.token = token }
        let told = try Self.run(Self.script, ["\(running.port)", token])
        #expect(
            told == """
                {"closed": 1000, "codes": [1007, 1003, 1008, 1009], "extensions": 0, \
                "pictures": [[1, 1, 5, 1, "picture 48"], [1, 1, 5, 2, "picture 48"], [1, 1, 5, 3, "picture 48"]], \
                "subprotocol": "framehost.v1"}

                """)
    }
}
