from collections import Counter

def majority(state):
    votes = Counter([state["a"], state["b"], state["c"]])
    state["label"] = votes.most_common(1)[0][0]
    return state

def confidence(state):
    votes = [state["a"], state["b"], state["c"]]
    state["confidence"] = votes.count(state["label"]) / 3
    return state

def ask_human(state):
    print(state["text"][:500])
    state["label"] = input("label? ")
    return state

def kappa(all_states):
    """inter annotator agreement"""
    pass
