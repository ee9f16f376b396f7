// What does not parse.
const bit<8> a = 1
const bit<8> b = ;
    //~^ error[syntax] expected `;` after the declaration, found `const`
    //~^ error[syntax] expected an expression, found `;`
struct s { bit<8> x } //~ error[syntax] expected `;` after the field, found `}`
const bit<8> c = (1 + 2; //~ error[syntax] expected `)` after the expression, found `;`
const bit<8> ok = 1;
