# old version, keep for now
from openai import OpenAI

def judge(code):
    c = OpenAI()
    r = c.chat.completions.create(model="gpt-4", messages=[{"role": "user", "content": "rate this code 1-5: " + code}])
    return r.choices[0].message.content

def judge_many(codes):
    res = []
    for x in codes:
        try:
            res.append(judge(x))
        except:
            res.append("3")
    return res
