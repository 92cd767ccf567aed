import Foundation
import Testing

/// Every effect that is installed, each in a process of its own: a crash in one is then a failure of that one.
@Suite struct PaintFrei0rTests {
    private static let folder = "/usr/lib/frei0r-1"
    /// Effects that need something else, and what.
    private static let special = [
        // It draws its graph by default, and loops for ever doing so (in ffmpeg likewise).
        "curves": #", "parameters": { "Show curves": false }"#
    ]

    static let effects: [String] = {
        let entries = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return entries.filter { $0.hasSuffix(".so") }.map { String($0.dropLast(3)) }.sorted()
    }()

    @Test(.enabled(if: !effects.isEmpty || Tool.isCI, "frei0r-plugins is not installed: make test-packages"))
    func everyEffectRunsOrSaysWhyNot() throws {
        #expect(Self.effects.count > 100)
        var ran = 0
        var refused = 0
        for effect in Self.effects {
            let options = "\"effect\": \"\(effect)\"\(Self.special[effect] ?? "")"
            let first = try run(stages: "{ \"id\": \"f\", \"use\": \"frei0r\", \(options) }")
            if first.status == 0 {
                ran += 1
                continue
            }
            #expect(first.status == 2, "\(effect): \(first.error)")
            if first.error.contains("mixes two pictures") {
                let mixed = try run(
                    stages: """
                        { "id": "other", "use": "test-source", "size": "179x133", "frames": 10, "pattern": "balls" },
                        { "id": "f", "use": "frei0r-mixer", "from": ["pictures", "other"], \(options) }
                        """)
                #expect(mixed.status == 0, "\(effect): \(mixed.error)")
                ran += 1
            } else {
                #expect(first.error.contains("makes pictures of its own") || first.error.contains("mixes three pictures"), "\(first.error)")
                refused += 1
            }
        }
        #expect(ran + refused == Self.effects.count && refused <= 13)
    }

    /// Ten frames of a size that is no multiple of eight.
    private func run(stages: String) throws -> Outcome {
        let workspace = try Workspace()
        let chain = try workspace.write(
            "chain.json",
            """
            { "stages": [
              { "id": "pictures", "use": "test-source", "size": "179x133", "frames": 10 },
              \(stages),
              { "id": "end", "use": "null-sink" } ] }
            """)
        return try Program.framehost.run([chain], timeout: 30)
    }
}
